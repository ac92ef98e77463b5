"""Measurements that are kept: whole or absent, found again, and one damaged file hides no other."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from specctl.adapters import runs
from specctl.errors import UnsupportedError, UsageError


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def kept(minute: int, kind: str = "bench") -> str:
    """Keep a measurement of a minute and return its id."""
    run_id = runs.new_id(kind, dt.datetime(2026, 11, 30, 2, minute, tzinfo=dt.UTC))
    runs.keep(run_id, {"minute": minute})
    return run_id


def test_what_is_kept_is_read_again() -> None:
    """By its id, the beginning of it, or as the last one, a measurement comes back as it was."""
    first, second = kept(1), kept(2)
    for name, minute in ((first, 1), (second[:-2], 2), ("20261130-0201", 1), ("last", 2), ("last-1", 1)):
        assert runs.read("bench", name).content["minute"] == minute
    assert [each.id for each in runs.listing("bench").runs] == [first, second]


def test_ids_sort_by_their_moments() -> None:
    """Also within one second the later one is the last."""
    moments = [dt.datetime(2026, 11, 30, 2, 0, 0, part, tzinfo=dt.UTC) for part in (0, 20, 500_000, 999_999)]
    ids = [runs.new_id("bench", moment) for moment in moments]
    assert ids == sorted(set(ids))


def test_kinds_do_not_mix() -> None:
    """An A/B is no bench."""
    kept(1, "ab")
    assert runs.listing("bench") == runs.Listing()
    with pytest.raises(UsageError, match="no bench is kept"):
        runs.read("bench", "last")


def test_keeping_again_replaces() -> None:
    """A measurement that goes on is kept level by level, under one id, and no other file is left over."""
    run_id = kept(1)
    path = runs.keep(run_id, {"minute": 5})
    assert runs.read("bench", run_id).content["minute"] == 5
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("kind", "called", "shown"),
    [
        ("bench", "bench", "specctl bench list"),
        ("ab", "experiment", "specctl ab --list"),
        ("calibrate", "calibration", "specctl calibrate --resume last"),
    ],
)
def test_what_is_not_kept_is_named_with_a_command_that_there_is(kind: str, called: str, shown: str) -> None:
    """Whoever mistypes an id is told what shows those that there are; where there is none, what measures."""
    with pytest.raises(UsageError, match=f"no {called} is kept in") as caught:
        runs.read(kind, "last")
    assert caught.value.hint == f"specctl {kind} --host H"
    runs.keep(f"{kind}-20261130-100000-abcd", {})
    for name in ("1999", "last-7"):
        with pytest.raises(UsageError, match=name) as caught:
            runs.read(kind, name)
        assert caught.value.hint == shown


@pytest.mark.parametrize(
    ("name", "words"),
    [("last-7", "there is no last-7"), ("20261130", "could be 2 of them"), ("1999", "no bench 1999 is kept")],
)
def test_names_that_fit_none_or_several_are_refused(name: str, words: str) -> None:
    """A name must fit one measurement."""
    kept(1)
    kept(2)
    with pytest.raises(UsageError, match=words):
        runs.read("bench", name)


@pytest.mark.parametrize(
    "content", [b"{half", b"[]", b'{"version": true}', b'{"id": "x"}', b"\xff\xfe", b"[" * 100_000]
)
def test_damaged_file_is_named_and_passed_over(content: bytes) -> None:
    """One damaged file is named, and the others are listed all the same."""
    good = kept(1)
    broken = runs.folder() / f"{runs.new_id('bench')}.json"
    broken.write_bytes(content)
    found = runs.listing("bench")
    assert [each.id for each in found.runs] == [good]
    assert len(found.faults) == 1
    assert str(broken) in found.faults[0]
    with pytest.raises(UsageError, match=r"remove the file|measurement|read"):
        runs.read("bench", broken.stem)


def test_newer_format_is_refused_in_words() -> None:
    """A file of a newer specctl is not guessed at."""
    run_id = kept(1)
    path = runs.folder() / f"{run_id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": runs.VERSION + 1}))
    with pytest.raises(UnsupportedError, match="written by a newer specctl"):
        runs.read("bench", run_id)
    assert "newer specctl" in runs.listing("bench").faults[0]


def test_no_place_to_keep_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written the error says where, and what to do."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    with pytest.raises(UsageError, match="could not be kept") as caught:
        runs.keep(runs.new_id("bench"), {})
    assert "XDG_STATE_HOME" in str(caught.value.hint)
