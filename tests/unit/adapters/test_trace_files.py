"""Trace and model files on disk: what cannot be read is an error that names the file, and a drawing is written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.adapters import trace_files
from specctl.control.replay.load import Series
from specctl.errors import EXIT_USAGE, UsageError

DATA = Path(__file__).parents[2] / "data" / "traces"


def test_files_are_read() -> None:
    """A trace and a model come from their files."""
    assert isinstance(trace_files.read_trace(str(DATA / "concurrency.csv")), Series)
    assert trace_files.read_model(str(DATA / "model.json")).max_running == 8


def test_a_mark_of_byte_order_is_passed_over(tmp_path: Path) -> None:
    """A table that a spreadsheet has saved begins with one."""
    place = tmp_path / "t.csv"
    place.write_bytes(b"\xef\xbb\xbftime_s,concurrency\n0,1\n")
    assert trace_files.read_trace(str(place)) == Series(step_s=1.0, levels=[1.0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"time_s,concurrency\n0,1\n1,many\n", "t.csv:3: not a concurrency: 'many'"),
        (b"time_s,concurrency\n0,1\n\xff\xfe,1\n", "t.csv:3: not UTF-8 text"),
        (b"", "t.csv:1: the file is empty"),
    ],
)
def test_a_trace_that_is_wrong_names_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    """The error is one of usage and has the file as it was named, the line, and where the formats are explained."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        trace_files.read_trace("t.csv")
    assert (str(caught.value), caught.value.hint) == (message, "docs/simulate.md has the formats")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"max_running": 1,\n oops}', "m.json:2: not JSON"),
        ('{"max_running": 1}', "m.json: modes: an object of 1 to 64 modes is wanted"),
        ("[" * 100_000, "m.json:1: not a model: nested too deeply"),
    ],
)
def test_a_model_that_is_wrong_names_file_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, message: str
) -> None:
    """What is not JSON has its line, and a value that cannot be meant its key."""
    monkeypatch.chdir(tmp_path)
    Path("m.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        trace_files.read_model("m.json")
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.hint


@pytest.mark.parametrize("name", ["absent.csv", ".", "a\0b", "x" * 5000])
def test_a_file_that_cannot_be_opened_is_an_error_of_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Absent, a folder, or a name that no file can have: told, never a traceback."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        trace_files.read_trace(name)


def test_a_model_has_a_largest_size(tmp_path: Path) -> None:
    """A file that is no model, but large, is not read to its end."""
    place = tmp_path / "m.json"
    place.write_bytes(b" " * (trace_files.MOST_MODEL_BYTES + 1))
    with pytest.raises(UsageError, match="more than 1 MiB"):
        trace_files.read_model(str(place))
