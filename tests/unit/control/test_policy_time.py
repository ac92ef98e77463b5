"""The passing of time: what ages by it, and what is never believed of a clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.limits import DAY_S
from specctl.control.policy_state import Freeze, State
from specctl.control.policy_time import Gap, aged, elapsed, spending, spent
from specctl.control.policy_types import Now

AT = Now(mono_s=100.0, wall_s=1000.0, boot="one")


@pytest.mark.parametrize(
    ("now", "gap"),
    [
        (Now(mono_s=130.0, wall_s=5.0, boot="one"), Gap(seconds=30.0, trusted=True)),
        (Now(mono_s=90.0, wall_s=1030.0, boot="one"), Gap(seconds=0.0, trusted=False)),
        (Now(mono_s=3.0, wall_s=1600.0, boot="two"), Gap(seconds=600.0, trusted=False)),
        (Now(mono_s=3.0, wall_s=10.0, boot="two"), Gap(seconds=0.0, trusted=False)),
        (Now(mono_s=3.0, wall_s=1e12, boot="two"), Gap(seconds=DAY_S, trusted=False)),
    ],
)
def test_time_goes_by_the_monotonic_clock_of_one_boot(now: Now, gap: Gap) -> None:
    """Within a boot the wall clock has no say; from one to the next it is believed for a day at most, and for no load."""
    assert elapsed(AT, now) == gap


def test_the_first_look_has_no_time_before_it() -> None:
    """Nothing is counted for the time before anybody looked."""
    assert elapsed(None, AT) == Gap(seconds=0.0, trusted=True)


def test_changes_count_for_a_day() -> None:
    """Changes of one hour are kept together, and all of them are forgotten a day after the hour began."""
    state = State()
    for _ in range(3):
        state = replace(state, spent=spending(state, 480.0))
        state = aged(state, 1000.0, AT)
    assert (len(state.spent), spent(state)) == (1, (3, 1440.0))
    state = aged(state, 3600.0, AT)
    state = replace(state, spent=spending(state, 5.0))
    assert (len(state.spent), spent(state)) == (2, (4, 1445.0))
    assert spent(aged(state, DAY_S - 100.0, AT)) == (1, 5.0)
    assert spent(aged(state, DAY_S + 1.0, AT)) == (0, 0.0)


def test_a_years_changes_stay_a_small_state() -> None:
    """However long it runs, no more than a day's hours are kept."""
    state = State()
    for _ in range(2000):
        state = replace(aged(state, 1800.0, AT), spent=spending(state, 1.0))
    assert len(state.spent) <= 26


def test_a_freeze_thaws_with_time() -> None:
    """A freeze loses what passes, and ends."""
    state = State(frozen=Freeze(reason="x", left_s=10.0))
    assert aged(state, 4.0, AT).frozen == Freeze(reason="x", left_s=6.0)
    assert aged(state, 10.0, AT).frozen is None
