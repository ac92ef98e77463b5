"""Which wheels fit which host, and what a lock file asks for; held to pip's own library of tags."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging import tags
from packaging.utils import parse_wheel_filename

from specctl.rollout.wheel_tags import Interpreter, Pinned, chosen, distribution, locked

LOCK = (Path(__file__).parents[3] / "requirements" / "agent.lock").read_text(encoding="utf-8")
DEBIAN = Interpreter(path="/usr/bin/python3", version=(3, 11), machine="x86_64", glibc=(2, 36))
OLD = Interpreter(path="/usr/bin/python3.12", version=(3, 12), machine="aarch64", glibc=(2, 17))
MUSL = Interpreter(path="/usr/bin/python3", version=(3, 12), machine="x86_64", glibc=None)
PIN = Pinned(name="psutil", version="7.2.2", sums=frozenset({"a", "b"}))
WHEEL = "psutil-7.2.2-cp36-abi3-manylinux2010_x86_64.manylinux_2_12_x86_64.manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("wheel", "python", "fits"),
    [
        (WHEEL, DEBIAN, True),
        (WHEEL, OLD, False),
        (WHEEL, MUSL, False),
        ("x-1-py3-none-any.whl", MUSL, True),
        ("x-1-py2.py3-none-any.whl", DEBIAN, True),
        ("x-1-py2-none-any.whl", DEBIAN, False),
        ("x-1-1build-py3-none-any.whl", DEBIAN, True),
        ("x-1-cp311-cp311-manylinux_2_36_x86_64.whl", DEBIAN, True),
        ("x-1-cp311-cp311-manylinux_2_37_x86_64.whl", DEBIAN, False),
        ("x-1-cp312-cp312-manylinux2014_x86_64.whl", DEBIAN, False),
        ("x-1-cp312-abi3-manylinux2014_x86_64.whl", DEBIAN, False),
        ("x-1-cp312-cp312-manylinux2014_aarch64.whl", OLD, True),
        ("x-1-cp312-cp312-musllinux_1_2_x86_64.whl", MUSL, False),
        ("x-1-cp311-cp311t-manylinux2014_x86_64.whl", DEBIAN, False),
        ("x-1-cp311-cp311-win_amd64.whl", DEBIAN, False),
        ("x-1-py3-none-any.zip", DEBIAN, False),
        ("py3-none-any.whl", DEBIAN, False),
    ],
)
def test_a_wheel_fits_or_not(wheel: str, python: Interpreter, fits: bool) -> None:
    """Interpreter, ABI, machine and C library must all be those of the host."""
    assert python.takes(wheel) is fits


@given(
    st.sampled_from(["py3", "py311", "cp36", "cp310", "cp311", "cp312", "py2", "pp311"]),
    st.sampled_from(["none", "abi3", "cp311", "cp310", "cp311t"]),
    st.sampled_from(
        ["any", "linux_x86_64", "manylinux1_x86_64", "manylinux2014_x86_64", "manylinux2014_aarch64"]
        + [f"manylinux_2_{minor}_x86_64" for minor in (5, 17, 28, 36, 37)]
    ),
)
def test_what_fits_by_us_fits_by_pips_library(python: str, abi: str, platform: str) -> None:
    """We take no wheel that pip would not; that is what must never happen on a host."""
    name = f"x-1-{python}-{abi}-{platform}.whl"
    _, _, _, wanted = parse_wheel_filename(name)
    mine = set(tags.cpython_tags((3, 11), platforms=list(DEBIAN.platforms()))) | set(
        tags.compatible_tags((3, 11), "cp311", list(DEBIAN.platforms()))
    )
    if DEBIAN.takes(name):
        assert wanted & mine


def test_the_agents_lock_is_pinned_with_hashes() -> None:
    """requirements/agent.lock names the two libraries of agents/requirements.in, each with the sums of its files."""
    pins = {pin.name: pin for pin in locked(LOCK)}
    asked = (Path(__file__).parents[3] / "agents" / "requirements.in").read_text(encoding="utf-8")
    assert set(pins) == {line.partition(">")[0] for line in asked.splitlines() if line and not line.startswith("#")}
    assert all(len(digest) == 64 for pin in pins.values() for digest in pin.sums)


@pytest.mark.parametrize("text", ["psutil>=7", "psutil==7.2.2", "psutil==7.2.2 \\\n    # via x"])
def test_a_lock_without_pin_or_hash_is_refused(text: str) -> None:
    """What is not pinned by version and sum is no lock."""
    with pytest.raises(ValueError, match="is not pinned"):
        locked(text)


def test_choosing_says_what_is_missing() -> None:
    """The wheel that fits and that the lock knows is chosen; else it is said which is missing, or that its sum is another."""
    assert chosen([PIN], {WHEEL: "a", "psutil-7.2.2-cp36-abi3-win_amd64.whl": "b"}, DEBIAN) == ({WHEEL: "a"}, [])
    found, missing = chosen([PIN], {WHEEL: "z"}, DEBIAN)
    assert (found, len(missing)) == ({}, 1)
    assert "SHA-256" in missing[0]
    assert chosen([PIN], {WHEEL: "a"}, OLD) == ({}, ["psutil 7.2.2 for CPython 3.12 on manylinux_2_17_aarch64"])


def test_names_are_compared_as_registries_do() -> None:
    """Case, dots and underscores make no other distribution."""
    assert distribution("Nvidia_ML.Py-13.615.71-py3-none-any.whl") == ("nvidia-ml-py", "13.615.71")
    assert distribution("notes.txt") == ("", "")
