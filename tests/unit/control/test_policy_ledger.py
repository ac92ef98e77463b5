"""The sums behind a decision: what they keep to, and what they promise of the time ahead."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specctl.control.limits import Limits
from specctl.control.mode import Mode
from specctl.control.policy import book_of
from specctl.control.policy_costs import Flat, HostCosts
from specctl.control.policy_ledger import Ledger
from specctl.control.policy_state import State
from specctl.control.policy_types import Costs, Means, Price
from tests.unit.control.policy_worlds import CHAIN, GOOD, LIMITS, NARROW, TABLE, WIDE

MODES = (CHAIN, WIDE, NARROW)
LOADS = st.lists(st.tuples(st.integers(0, 64), st.integers(1, 300)), min_size=1, max_size=12)
COSTS = st.sampled_from(
    [
        Flat(each=Price(means=Means.RESTART, seconds=480.0)),
        Flat(each=Price(means=Means.RESTART, seconds=5.0)),
        Flat(each=Price(means=Means.LIVE, seconds=0.1)),
        HostCosts(live_knobs={"ddtree": frozenset({"tree_budget"})}, load_s={"dflash": 480.0, "ddtree": 300.0}),
    ]
)


def ledger(costs: Costs, running: Mode = WIDE, limits: Limits = LIMITS) -> Ledger:
    """Return empty sums."""
    book = book_of(replace(GOOD, mode=running, modes=MODES, costs=costs), limits)
    assert book is not None
    return Ledger(book, State(), limits)


@settings(max_examples=50, deadline=None)
@given(loads=LOADS, costs=COSTS, running=st.sampled_from(MODES))
def test_no_work_is_above_anothers_by_more_than_the_way(
    loads: list[tuple[int, int]], costs: Costs, running: Mode
) -> None:
    """Whatever the load, the least work is 0, and between two modes lie at most `most` prices of the way."""
    sums = ledger(costs, running)
    for level, seconds in loads:
        sums.advance(float(seconds), float(level))
        assert min(sums.work) == 0.0
        for old, new in itertools.permutations(range(len(MODES)), 2):
            way = sums.book.ways[old][new]
            pace = next(pace for pace in sums.paces if pace.seconds == way)
            assert sums.work[new] <= sums.work[old] + LIMITS.most * pace.price * (1 + 1e-9) + 1e-9
        assert min(sums.gains) >= 0.0
        assert sums.excess >= 0.0


@settings(max_examples=50, deadline=None)
@given(loads=LOADS, costs=COSTS, level=st.integers(1, 64))
def test_nothing_is_decided_before_it_was_said_to_be(loads: list[tuple[int, int]], costs: Costs, level: int) -> None:
    """Under a load that stays the rule fires for no mode before `quiet_s`, looked at each second."""
    sums = ledger(costs)
    for before, seconds in loads:
        sums.advance(float(seconds), float(before))
    assume(sums.wants(float(level)) is None)
    quiet_s = sums.quiet_s(float(level))
    for second in range(1, 400):
        if quiet_s is not None and second >= quiet_s:
            break
        sums.advance(1.0, float(level))
        assert sums.wants(float(level)) is None


def test_a_mode_within_the_tolerance_is_as_good_as_the_best() -> None:
    """Three per cent are no regret where a change takes long, and all of them where it takes a moment."""
    limits = Limits(tolerance_ratio=0.5)
    long, moment = (
        ledger(Flat(each=Price(means=Means.RESTART, seconds=480.0)), NARROW, limits),
        ledger(Flat(each=Price(means=Means.LIVE, seconds=0.1)), NARROW, limits),
    )
    for sums in (long, moment):
        sums.advance(1.0, 64.0)
    place = MODES.index(NARROW)
    assert long.work[place] == 0.0
    assert moment.work[place] > 0.0


def test_an_idle_hour_makes_a_change_cheap_and_an_idle_minute_does_not() -> None:
    """The price follows the pace of serving over one price and over ten, the busier of both."""
    sums = ledger(Flat(each=Price(means=Means.RESTART, seconds=480.0)))
    sums.advance(7200.0, 32.0)
    busy = sums.price(0)
    sums.advance(60.0, 0.0)
    minute = sums.price(0)
    sums.advance(4 * 3600.0, 0.0)
    assert minute > 0.95 * busy
    assert sums.price(0) < 0.1 * busy


def test_an_unknown_concurrency_is_not_counted() -> None:
    """Where nothing is known of the running mode, nothing is added to any sum."""
    book = book_of(replace(GOOD, rates=replace(TABLE, max_running=None)), LIMITS)
    assert book is not None
    sums = Ledger(book, State(), LIMITS)
    assert sums.advance(10.0, 500.0) is False
    assert (sums.work, sums.watched_s) == ([0.0, 0.0], 0.0)


@pytest.mark.parametrize("least", [0.4, 1.0])
def test_state_and_sums_are_one(least: float) -> None:
    """Sums that are settled into a state and taken up again go on as if nothing had happened."""
    limits = Limits(least=least)
    costs = Flat(each=Price(means=Means.RESTART, seconds=480.0))
    straight = ledger(costs, WIDE, limits)
    straight.advance(100.0, 32.0)
    taken = Ledger(straight.book, straight.settled(State(), since_look_s=0.0), limits)
    for sums in (straight, taken):
        sums.advance(50.0, 12.0)
    assert (straight.work, straight.gains, straight.paces) == (taken.work, taken.gains, taken.paces)
