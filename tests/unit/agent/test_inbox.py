"""Requests are taken in the order in which they were written."""

from __future__ import annotations

import os
from pathlib import Path

from specctl_agent.inbox import MOST, Inbox


def test_the_first_written_comes_first(tmp_path: Path) -> None:
    """Ids are random, so that their order says nothing: what was asked first is done, and recorded, first."""
    names = [f"{number * 7 % 31:032x}.json" for number in range(MOST + 4)]
    for age, name in enumerate(names):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, ns=(age * 1_000_000, age * 1_000_000))
    (tmp_path / "notes.txt").write_text("")
    inbox = Inbox(tmp_path, os.getuid())
    assert inbox.names() == tuple(names[:MOST])
    inbox.close()
