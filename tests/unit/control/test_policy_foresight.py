"""What the hours of the week say of a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from specctl.control import policy
from specctl.control.policy_book import Book
from specctl.control.policy_costs import Flat
from specctl.control.policy_foresight import hour_of_week, outlook
from specctl.control.policy_types import Hold, Means, Price, SwitchAlgo
from tests.unit.control.policy_worlds import CHAIN, GOOD, LIMITS, START, earned, settled

MONDAY = 4 * 86_400.0
"""1970-01-05, 00:00 UTC."""


@dataclass(frozen=True, slots=True)
class Week:
    """A week in which each hour has one concurrency; hours that are not given were never watched."""

    levels: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, hour_of_week: int) -> Mapping[float, float] | None:
        """Return that hour, watched whole."""
        level = self.levels.get(hour_of_week)
        return None if level is None else {level: 3600.0}


def book() -> Book:
    """Return the worths while the wide tree runs."""
    found = policy.book_of(GOOD, LIMITS)
    assert found is not None
    return found


CHAIN_AT = GOOD.modes.index(CHAIN)


def test_hours_begin_on_monday() -> None:
    """Hour 0 is Monday 00:00 UTC, as in the profile."""
    assert [hour_of_week(at) for at in (MONDAY, MONDAY - 1, MONDAY + 3600.0)] == [0, 167, 1]


def test_a_lead_counts_until_it_is_lost() -> None:
    """Three hours at 32 requests favour the chain, then the tree is ahead again: the way back will be wanted."""
    week = Week({hour: 32.0 if hour < 3 else 1.0 for hour in range(12)})
    found = outlook(book(), CHAIN_AT, week, MONDAY, LIMITS)
    assert found is not None
    assert found.gain == pytest.approx(3 * 3600 * book_lead(32.0))
    assert (found.dwell_s, found.back, found.begun) == (3 * 3600.0, True, True)


def book_lead(concurrency: float) -> float:
    """Return by how much the chain leads at a concurrency."""
    row = book().row(concurrency)
    assert row is not None
    return row.worths[CHAIN_AT] - row.own


def test_a_lead_to_the_horizon_asks_for_no_way_back() -> None:
    """Where the lead lasts as far as one looks, one way is all there is to pay."""
    found = outlook(book(), CHAIN_AT, Week(dict.fromkeys(range(168), 32.0)), MONDAY, LIMITS)
    assert found is not None
    assert (found.back, found.dwell_s) == (False, LIMITS.horizon_s)


def test_hours_that_were_never_watched_say_nothing() -> None:
    """With less than two known hours ahead there is no outlook, and what is behind a gap is not seen."""
    assert outlook(book(), CHAIN_AT, Week({0: 32.0}), MONDAY, LIMITS) is None
    assert outlook(book(), CHAIN_AT, Week({1: 32.0, 2: 32.0, 3: 32.0}), MONDAY, LIMITS) is None


def test_a_mode_that_stays_behind_brings_nothing() -> None:
    """No lead, no gain."""
    found = outlook(book(), CHAIN_AT, Week(dict.fromkeys(range(168), 1.0)), MONDAY, LIMITS)
    assert found is not None
    assert (found.gain, found.begun) == (0.0, False)


def test_a_foreseen_change_is_made_at_a_cheap_moment() -> None:
    """As the busy hours begin, an idle server goes at once: nothing is lost by it now, and the hours ahead pay."""
    now = replace(START, wall_s=MONDAY)
    view = replace(GOOD, concurrency=0.0, history=Week(dict.fromkeys(range(168), 32.0)))
    answer = policy.decide(view, settled(), LIMITS, now)
    assert isinstance(answer, SwitchAlgo)
    assert (answer.mode, answer.why.rule) == (CHAIN, "foreseen")


def test_nothing_is_foreseen_while_it_is_dear() -> None:
    """At full load the same change waits: a moment that costs more than the hours' mean is not cheap."""
    now = replace(START, wall_s=MONDAY)
    view = replace(GOOD, concurrency=64.0, history=Week(dict.fromkeys(range(168), 32.0)))
    busy = replace(settled(), paces={480.0: (5000.0, 5000.0)}, watched_s=1e6)
    assert isinstance(policy.decide(view, busy, LIMITS, now), Hold)


def test_a_gain_that_history_says_will_not_last_is_let_be() -> None:
    """A lead that ends within minutes by all past weeks is not followed, until the regret of staying says that history is wrong."""
    _, state, now = earned()
    monday = replace(now, wall_s=MONDAY + 3500.0)
    week = Week({0: 32.0, **dict.fromkeys(range(1, 168), 1.0)})
    view = replace(GOOD, history=week)
    held = policy.decide(view, replace(state, since_look_s=1.0), LIMITS, monday)
    assert isinstance(held, Hold)
    assert held.why.rule == "history-says-no"
    wrong = replace(state, excess=1e9, since_look_s=1.0)
    assert isinstance(policy.decide(view, wrong, LIMITS, monday), SwitchAlgo)


def test_history_has_no_say_in_changes_of_seconds() -> None:
    """A change that takes seconds follows the load itself, whatever the hours were."""
    quick = replace(GOOD, costs=Flat(each=Price(means=Means.RESTART, seconds=5.0)))
    _, state, now = earned(quick)
    against = replace(quick, history=Week(dict.fromkeys(range(168), 1.0)))
    assert isinstance(policy.decide(against, state, LIMITS, now), SwitchAlgo)
