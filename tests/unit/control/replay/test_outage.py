"""What a switch costs, as the command line spells it."""

from __future__ import annotations

import pytest

from specctl.control.replay import outage
from specctl.control.replay.outage import Outage


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("live", Outage(seconds=0.1, drains=False), "0.1 s, live"),
        ("restart", Outage(seconds=480.0, drains=True), "480 s"),
        ("5", Outage(seconds=5.0, drains=True), "5 s"),
        ("0", Outage(seconds=0.0, drains=True), "0 s"),
    ],
)
def test_costs_are_read(text: str, expected: Outage, shown: str) -> None:
    """Live keeps its requests; a restart, and seconds, drain first."""
    found = outage.parse(text)
    assert (found, str(found)) == (expected, shown)


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf", "90000"])
def test_a_cost_that_cannot_be_is_refused(text: str) -> None:
    """Neither a word nor a number of seconds within a day: refused."""
    with pytest.raises(ValueError, match=r"neither live|a switch takes"):
        outage.parse(text)
