"""What looking at a server shows: lines of a log as they came, and where some are missing."""

from __future__ import annotations

from specctl.ops.look import LINES_LOST, told


def test_lost_lines_are_told_where_they_are_missing() -> None:
    """A gap in a log that is followed stands before the lines after it; without one there is nothing but the lines."""
    assert list(told({"lines": ["a", "b"], "lost": False})) == ["a", "b"]
    assert list(told({"lines": ["c"], "lost": True})) == [LINES_LOST, "c"]


def test_an_event_of_another_shape_has_no_lines() -> None:
    """What a host should not send shows nothing and breaks nothing."""
    assert list(told({"lines": 5})) == list(told({})) == []
