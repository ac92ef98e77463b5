"""Files that are whole or not there."""

from __future__ import annotations

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
