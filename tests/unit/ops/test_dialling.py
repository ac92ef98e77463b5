"""Connections that are begun ahead: each is handed over once, and an error is the caller's when it asks."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from specctl.errors import UnsupportedError
from specctl.ops.dialling import Dialling
from specctl.ops.sights import look
from tests import fakes


def test_each_connection_is_handed_over_once(tmp_path: Path) -> None:
    """The first call gets what was begun, a later one a connection of its own; a host that cannot be reached raises its error."""
    here = replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path))
    absent = replace(here, name="absent", python="/no/python")
    dial = Dialling([here, absent, here])
    first, second = dial(here), dial(here)
    try:
        assert first is not second
        assert first.session.hello["pid"] != second.session.hello["pid"]
    finally:
        first.close()
        second.close()
    with pytest.raises(UnsupportedError, match="there is no /no/python"):
        dial(absent)


def test_a_look_takes_what_was_begun(tmp_path: Path) -> None:
    """A look over connections that were begun ahead is the same look."""
    here = replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path))
    absent = replace(here, name="absent", python="/no/python")
    pairs = [(here, fakes.SERVER), (absent, fakes.SERVER)]
    found = look(pairs, dial=Dialling([host for host, _ in pairs]))
    assert [(sight.host, sight.state) for sight in found] == [("local", "not deployed"), ("absent", "unknown")]
