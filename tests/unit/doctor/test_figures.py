"""A figures file is read whole or refused with every problem; no number that makes no sense gets through."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control.mode import parse
from specctl.doctor import figures
from specctl.doctor.evidence import GpuLook, Served, Speed
from specctl.doctor.figures import FiguresError
from specctl.doctor.judge import judge
from tests.examples import HOSTILE

CHAIN = "dflash:block_size=8"


def test_every_part_is_read() -> None:
    """Speeds with the file's concurrency, runs as their median, requests, GPUs and log lines become evidence."""
    found = figures.parse(
        {
            "about": "the field",
            "mode": CHAIN,
            "concurrency": 2,
            "counts_bonus": False,
            "speeds": [
                {"mode": "none", "tokens_s": [109.7, 109.2, 100.2]},
                {"mode": CHAIN, "tokens_s": 9, "concurrency": 8, "run": "b"},
            ],
            "served": [{"tokens": 10, "verify_calls": 4, "decode_s": 0.5, "finish": "length"}],
            "gpus": [{"index": 1, "power_w": 140.5, "link_width": 8, "throttles": ["hw_thermal"], "xids": [79]}],
            "log": "one\ntwo",
        }
    )
    evidence = found.evidence
    assert evidence.speeds == (
        Speed(mode=parse("none"), tokens_s=109.2, concurrency=2.0),
        Speed(mode=parse(CHAIN), tokens_s=9.0, concurrency=8.0, run="b"),
    )
    assert evidence.served == (Served(tokens=10, verify_calls=4, decode_s=0.5, finish="length"),)
    assert evidence.gpus == (GpuLook(index=1, power_w=140.5, link_width=8, throttles=("hw_thermal",), xids=(79,)),)
    assert (evidence.mode, evidence.counts_root, evidence.counts_bonus) == (parse(CHAIN), True, False)
    assert found.lines == ("one", "two")


def test_an_empty_file_says_nothing() -> None:
    """Without figures there is no evidence but the conventions."""
    found = figures.parse({})
    assert (found.evidence.mode, found.evidence.speeds, found.lines) == (None, (), ())


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ([], "a mapping"),
        ({"speed": []}, "speed: there is no such key"),
        ({"mode": "dtree"}, "mode: no algo 'dtree'"),
        ({"mode": "dflash:block_size=1"}, "outside 2 to 64"),
        ({"speeds": [{"mode": CHAIN}]}, "speeds[0].tokens_s: tokens a second, above 0"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": 0}]}, "above 0"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": -1}]}, "speeds[0].tokens_s: a number from 0 on"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": math.nan}]}, "a number from 0 on"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": math.inf}]}, "a number from 0 on"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": 10**400}]}, "a number from 0 on"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": [1, "x"]}]}, "speeds[0].tokens_s[1]"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": True}]}, "a number from 0 on"),
        ({"speeds": {"mode": CHAIN}}, "speeds: a list"),
        ({"speeds": [7]}, "speeds[0]: a mapping"),
        ({"speeds": [{"mode": CHAIN, "tokens_s": 1, "tok_s": 1}]}, "speeds[0].tok_s: there is no such key"),
        ({"served": [{"verify_calls": 4}]}, "served[0].tokens"),
        ({"gpus": [{"power_w": 1}]}, "gpus[0].index"),
        ({"gpus": [{"index": 0, "throttles": "hot"}]}, "gpus[0].throttles: a list"),
        ({"counts_bonus": "yes"}, "counts_bonus: true or false"),
        ({"log": 7}, "log: a text"),
    ],
)
def test_what_cannot_be_meant_is_refused(plain: object, words: str) -> None:
    """The error names the key and what is wanted there."""
    with pytest.raises(FiguresError) as error:
        figures.parse(plain)
    assert words in str(error.value)


def test_all_problems_are_told_at_once() -> None:
    """Whoever mends a file mends it once."""
    with pytest.raises(FiguresError) as error:
        figures.parse({"mode": "x", "speeds": [{"tokens_s": -1}], "log": 1})
    assert len(error.value.problems) >= 4


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*figures.KEYS, "tokens_s", "index", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=HOSTILE, deadline=None)
@given(st.dictionaries(st.sampled_from(figures.KEYS), PLAIN, max_size=6))
def test_any_mapping_is_read_or_refused(plain: dict[str, object]) -> None:
    """Nothing that stands in a file makes reading or judging fail otherwise."""
    try:
        found = figures.parse(plain)
    except FiguresError:
        return
    judge(found.evidence)
