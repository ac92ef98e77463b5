"""Files that are whole or not there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from specctl.adapters import lasting
from specctl.errors import UsageError


def test_a_file_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    """The new content stands alone in the folder, readable as was asked for."""
    path = tmp_path / "kept.json"
    path.write_bytes(b"a longer old one")
    lasting.replace_file(path, b"new", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (b"new", 0o600, [path])


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """What stands in its place stays, nothing is left beside it, and a person is told which file and what to do."""
    taken = tmp_path / "taken"
    (taken / "inside").mkdir(parents=True)
    for path, why in (
        (taken, "taken: cannot be written: "),
        (tmp_path / "none" / "f", "f: cannot be written: No such"),
    ):
        with pytest.raises(UsageError, match=why) as refused:
            lasting.write(path, b"new", hint="name another")
        assert refused.value.hint == "name another"
    assert [each.name for each in tmp_path.rglob("*")] == ["taken", "inside"]


@pytest.mark.parametrize(
    ("name", "why", "hint"),
    [
        ("gone/f.svg", "there is no folder", "mkdir -p"),
        ("taken", "taken is a folder", "name a file in it"),
        ("file/f.svg", "there is no folder", "mkdir -p"),
        ("x" * 300, "cannot be written: File name too long", "name another file"),
        (f"{'x' * 300}/f.svg", "cannot be written: File name too long", "name another file"),
    ],
)
def test_a_place_that_cannot_be_is_refused_in_words(tmp_path: Path, name: str, why: str, hint: str) -> None:
    """Before anything is measured for a file it is known whether it can stand there; none of these is a bug of ours."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=why) as refused:
        lasting.refuse_place(tmp_path / name)
    assert str(refused.value.hint).startswith(hint)


AS_NOBODY = """
import os, pathlib, sys
from specctl.adapters import lasting
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
lasting.refuse_place(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.parametrize(("mode", "why"), [(0o000, "Permission denied"), (0o555, "takes no files of yours")])
def test_a_folder_that_is_not_ours_is_refused(mode: int, why: str) -> None:
    """An ordinary user who names root's folder is told so, whether it may not be looked at or only not written."""
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        shut = Path(outer) / "shut"
        shut.mkdir(mode=mode)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(shut / "f")], capture_output=True, text=True, check=False
        )
    assert why in done.stderr.splitlines()[-1]


def test_what_may_not_be_looked_at_is_not_there(tmp_path: Path) -> None:
    """A name that no disk takes is no file and no folder, and no error."""
    long = tmp_path / ("x" * 300)
    assert (lasting.is_file(long), lasting.is_folder(long)) == (False, False)
    assert (lasting.is_folder(tmp_path), lasting.is_file(tmp_path)) == (True, False)
