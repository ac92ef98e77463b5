"""The policy in a replay: the same decisions as the agent's, tick by tick, and what the hours of the week add."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control import policy
from specctl.control.limits import Limits
from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.policy_costs import Flat
from specctl.control.policy_follow import Follower
from specctl.control.policy_state import LONG_AGO_S, State
from specctl.control.policy_types import Hold, Means, Now, Price
from tests.unit.control.policy_worlds import CHAIN, GOOD, NARROW, TABLE, WIDE

UNTRIED = Limits(trial_s=0.0)
MODES = (CHAIN, WIDE, NARROW)
OBJECTIVE = Objective(metric=Metric.THROUGHPUT)
DAY_S = 86_400


def follower(seconds: float, start: Mode = WIDE, limits: Limits = UNTRIED) -> Follower:
    """Return a follower whose changes all take so many seconds."""
    costs = Flat(each=Price(means=Means.RESTART, seconds=seconds))
    return Follower(rates=TABLE, costs=costs, modes=MODES, objective=OBJECTIVE, start=start, limits=limits)


def changes(found: Follower, levels: Sequence[float], start: Mode, away_s: int) -> list[tuple[int, Mode]]:
    """Return what a follower does over a series of a step a second: the second and the mode of each change."""
    mode, second, acts = start, 0, list[tuple[int, Mode]]()
    while second < len(levels):
        wish = found.choose(float(second), levels[second], mode)
        if wish is None:
            second += 1
            continue
        acts.append((second, wish))
        mode = wish
        second += max(1, away_s)
    return acts


def by_the_agent(levels: Sequence[float], start: Mode, away_s: int) -> list[tuple[int, Mode]]:
    """Return what the agent's own ticks do over the series."""
    view = replace(GOOD, mode=start, modes=MODES, costs=Flat(each=Price(means=Means.RESTART, seconds=float(away_s))))
    now = Now(mono_s=-1.0, wall_s=-1.0)
    state = replace(State.fresh(start, dwell_s=LONG_AGO_S), at=now)
    mode, second, acts = start, 0, list[tuple[int, Mode]]()
    while second < len(levels):
        now = Now(mono_s=float(second), wall_s=float(second))
        seen = replace(view, mode=mode, concurrency=levels[second])
        state = policy.advance(state, seen, UNTRIED, now)
        answer = policy.decide(seen, state, UNTRIED, now)
        if isinstance(answer, Hold):
            second += 1
            continue
        acts.append((second, answer.mode))
        second += max(1, away_s)
        back = Now(mono_s=float(second - 1), wall_s=float(second - 1))
        state = policy.arrived(state, mode, answer, UNTRIED, back, away_s=float(away_s))
        mode = answer.mode
    return acts


@settings(max_examples=20, deadline=None)
@given(
    parts=st.lists(st.tuples(st.integers(0, 64), st.integers(1, 60)), min_size=1, max_size=15),
    start=st.sampled_from(MODES),
    away_s=st.sampled_from([2, 5, 20]),
)
def test_a_replay_decides_as_the_agent_does(parts: list[tuple[int, int]], start: Mode, away_s: int) -> None:
    """Over any load the follower changes in the same second to the same mode as the agent's advance and decide."""
    levels = [float(level) for level, seconds in parts for _ in range(seconds)]
    assert changes(follower(float(away_s), start), levels, start, away_s) == by_the_agent(levels, start, away_s)


def daily(days: int, night: float, noon: float) -> list[float]:
    """Return whole days of load, a level a second: nights with few requests, days with many."""
    day = [night if hour < 8 or hour >= 20 else noon for hour in range(24)]
    return [day[second // 3600 % 24] for second in range(days * DAY_S)]


@pytest.mark.slow
def test_the_hours_of_the_week_are_learned() -> None:
    """From the third day on a restart of eight minutes follows the change of load at night within a quarter of an hour."""
    costs = Flat(each=Price(means=Means.RESTART, seconds=480.0))
    found = Follower(rates=TABLE, costs=costs, modes=MODES, objective=Objective(), start=CHAIN, limits=UNTRIED)
    acts = changes(found, daily(5, 2.0, 40.0), CHAIN, 480)
    at_night = [(second % DAY_S, mode) for second, mode in acts if second >= 2 * DAY_S and mode == WIDE]
    assert [second // 900 for second, _ in at_night] == [20 * 4] * 3
    assert len([second for second, _ in acts if second >= 2 * DAY_S]) <= 9


@pytest.mark.slow
def test_a_worse_mode_is_left_however_long_it_was_the_best() -> None:
    """After days in which the wide tree was the best, a load that never falls again still moves the server within hours."""
    levels = [*daily(2, 1.0, 1.0), *([40.0] * DAY_S)]
    acts = changes(follower(480.0), levels, WIDE, 480)
    assert [mode for _, mode in acts] == [CHAIN]
    assert 2 * DAY_S < acts[0][0] < 2 * DAY_S + 3 * 3600


@pytest.mark.slow
def test_fourteen_days_take_seconds() -> None:
    """1.2 million steps of a load that changes each second take less than ten seconds of CPU."""
    found = follower(480.0, CHAIN)
    begun = time.process_time()
    for second in range(14 * DAY_S):
        level = float(int(20 + 15 * math.sin(second / 13751) + second * 7919 % 11))
        wish = found.choose(float(second), level, found.mode)
        assert wish is None or wish in MODES
    assert time.process_time() - begun < 10.0


def test_a_replay_that_lost_its_mode_is_refused() -> None:
    """Sums of one mode say nothing of another: a caller that changed it by itself hears so."""
    found = follower(5.0)
    with pytest.raises(ValueError, match="was left running"):
        found.choose(0.0, 3.0, CHAIN)
