"""Time that a schedule spends in each mode, at each level."""

from __future__ import annotations

import pytest

from specctl.control.replay import schedule
from specctl.control.replay.load import Series
from specctl.control.replay.schedule import Move, Schedule, Times
from tests.unit.control.replay.loads import NONE, SERVICE, TREE

SERIES = Series(step_s=1.0, levels=[1, 1, 2, 2, 4, 4])


def test_a_switch_serves_nothing_while_it_lasts() -> None:
    """Time before, during and after is told apart, a step that a switch ends in counted in part."""
    plan = Schedule(start=NONE, moves=(Move(step=1, mode=TREE),))
    assert list(schedule.stretches(SERIES, plan, 1.5)) == [(0.0, 1.0, NONE), (1.0, 2.5, None), (2.5, 6.0, TREE)]
    assert schedule.times(SERIES, plan, 1.5) == Times(
        served={NONE: {1: 1.0}, TREE: {2: 1.5, 4: 2.0}}, away={1: 1.0, 2: 0.5}, switches=1
    )


def test_a_switch_that_the_end_cuts_off_serves_nothing_more() -> None:
    """A switch that is not over when the series ends leaves the rest of it away."""
    plan = Schedule(start=NONE, moves=(Move(step=4, mode=TREE),))
    found = schedule.times(SERIES, plan, 60.0)
    assert (found.away_s, found.served) == (2.0, {NONE: {1: 2.0, 2: 2.0}})


def test_tokens_are_rates_by_time() -> None:
    """Tokens are each mode's rate at each level, for as long."""
    plan = Schedule(start=NONE, moves=(Move(step=2, mode=TREE),))
    found = schedule.tokens(SERVICE, schedule.times(SERIES, plan, 0.0))
    assert found == pytest.approx(2 * 40 + 2 * SERVICE.rate(TREE, 2) + 2 * 160)
