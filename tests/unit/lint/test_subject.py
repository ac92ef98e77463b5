"""An argv is read as the engine's parser would read it, and each flag knows the inventory's key behind it."""

from __future__ import annotations

import dataclasses

import pytest

from specctl.engines.types import Argument, Credential
from specctl.lint.subject import Given, is_false, is_loopback, is_true, number, read_argv, whole
from specctl.ops.lint import flag_table
from tests.unit.lint.subjects import Made, fleet, subject


def read(*words: Argument) -> tuple[Given, ...]:
    """Read words as the stock engine's arguments."""
    server = fleet().hosts[0].servers[0]
    return read_argv(("python", "-m", "sglang.launch_server", *words), server.profile, flag_table("sglang-0.5.23"))


def test_flags_take_what_follows_them() -> None:
    """A switch nothing, a flag one word, a list several; a joined value is known as such; a stray word at the front is left out."""
    assert read("stray", "--enable-metrics", "--port", "30001", "--warmups", "a", "b", "--config=f.yaml") == (
        Given(written="--enable-metrics", name="--enable-metrics"),
        Given(written="--port", name="--port", values=("30001",)),
        Given(written="--warmups", name="--warmups", values=("a", "b")),
        Given(written="--config=f.yaml".partition("=")[0], name="--config", values=("f.yaml",), joined=True),
    )


def test_a_secret_file_is_a_value_of_its_own_kind() -> None:
    """The path of a credential follows its flag, marked."""
    assert read("--config", Credential(name="engine.yaml")) == (
        Given(written="--config", name="--config", values=("<engine.yaml>",), secret=True),
    )


@pytest.mark.parametrize("value", ["-1", "-0.5", "-.5", "-", "-x y"])
def test_what_begins_with_a_dash_can_be_a_value(value: str) -> None:
    """Negative numbers, a lone dash and what holds a blank are values, as argparse has it."""
    assert read("--chunked-prefill-size", value)[0].values == (value,)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("--tensor-parallel-size", "--tp-size"),
        ("--context-len", "--context-length"),
        ("--cuda-graph-bs", "--cuda-graph-bs"),
    ],
)
def test_other_spellings_lead_to_the_name(written: str, name: str) -> None:
    """An alias and a clear abbreviation stand for their flag; an unclear one stays as it is."""
    assert read(written, "1")[0].name == name


def test_the_last_one_counts() -> None:
    """Of a flag given twice the parser keeps the last."""
    judged = dataclasses.replace(subject(Made()), given=read("--port", "1", "--port", "2"))
    assert judged.whole("--port") == 2


def test_flags_lead_back_to_keys() -> None:
    """Options, specctl's own words and knobs have a key; what the profile adds has none."""
    judged = subject(Made(options={"--tokenizer-mode": "slow"}))
    names = (
        "--tokenizer-mode",
        "--port",
        "--host",
        "--speculative-dflash-block-size",
        "--config",
        "--speculative-algorithm",
    )
    keys = [judged.key(judged.find(name)) for name in names]
    assert keys == ["options.--tokenizer-mode", "port", "bind", "knobs.dflash.block_size", "secrets", None]
    assert judged.key(None) is None


def test_keys_lead_back_to_lines() -> None:
    """A key's origin is the place in the file that said it; a section's is that of its first value."""
    judged = subject(Made())
    port, secrets = judged.origin("port"), judged.origin("secrets")
    assert port is not None
    assert secrets is not None
    assert (port.layer, secrets.layer) == ("server:stock", "defaults")
    assert judged.origin(None) is judged.origin("no.such.key") is None


def test_a_fork_is_not_its_base() -> None:
    """A built-in profile and one of a stated version are exact; one without a version is a fork; no list, not exact."""
    assert [subject(Made(of=name)).is_exact for name in ("stock", "lab", "pr", "fork", "unlisted")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_none_is_no_speculation() -> None:
    """The name NONE and the lack of a name are the same; names are read in upper case."""
    assert subject(Made(algo="none")).algorithm is None
    assert subject(Made(algo="none", options={"--speculative-algorithm": "none"})).algorithm is None
    assert subject(Made(select={"--speculative-algorithm": "dflash"})).algorithm == "DFLASH"


def test_texts_are_read_carefully() -> None:
    """Numbers, yes and no as the engine reads them, and what is none of them."""
    assert [whole(text) for text in ("8", "-1", " 7 ", "1.5", "", None, "9" * 400)] == [
        8,
        -1,
        7,
        None,
        None,
        None,
        None,
    ]
    assert [number(text) for text in ("0.5", "1e3", "nan", "inf", "x", None)] == [0.5, 1000.0, None, None, None, None]
    assert [is_true(text) for text in ("1", "True", "no", None)] == [True, True, False, False]
    assert [is_false(text) for text in ("0", "OFF", "yes", None)] == [True, True, False, False]
    assert [is_loopback(text) for text in ("127.0.0.1", "127.1.2.3", "::1", "localhost", "0.0.0.0", "::")] == [
        *([True] * 4),
        *([False] * 2),
    ]
