"""The clairvoyant schedule: as good as trying every schedule, and never beaten by one that does not know the future."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.replay import choosers, clairvoyant, schedule
from specctl.control.replay.choosers import Threshold
from specctl.control.replay.load import Series
from specctl.control.replay.schedule import Move, Schedule
from specctl.control.replay.worth import Worth
from tests.unit.control.replay.loads import CHAIN, MODES, NONE, SERVICE, TREE

LEVELS = st.lists(st.integers(0, 12), min_size=1, max_size=60)
COSTS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.5, 4.0, 30.0])
METRICS = st.sampled_from(Metric)


def gathered(series: Series, values: Worth, plan: Schedule, away_s: float) -> float:
    """Return the worth of a schedule over a whole series, second by second and not by the code under test."""
    total = 0.0
    for begin, end, mode in schedule.stretches(series, plan, away_s):
        for step, level in enumerate(series.levels):
            overlap = min(end, (step + 1) * series.step_s) - max(begin, step * series.step_s)
            total += values.of(mode, level) * max(0.0, overlap) if mode is not None else 0.0
    return total


def every_schedule(series: Series, start: Mode, away_s: float) -> Iterator[Schedule]:
    """Yield every schedule of at most two switches that begin at steps, none before the one before it is over."""
    steps = range(len(series.levels))
    yield Schedule(start=start)
    for step, mode in itertools.product(steps, SERVICE.rates):
        yield Schedule(start=start, moves=(Move(step=step, mode=mode),))
    for (one, first), (two, second) in itertools.product(itertools.product(steps, SERVICE.rates), repeat=2):
        if two * series.step_s >= one * series.step_s + away_s and two > one:
            yield Schedule(start=start, moves=(Move(step=one, mode=first), Move(step=two, mode=second)))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=7), COSTS, METRICS, MODES)
def test_no_schedule_is_worth_more(levels: list[int], away_s: float, metric: Metric, start: Mode) -> None:
    """Against every schedule of up to two switches of a short series, tried one by one."""
    series = Series(step_s=1.0, levels=levels)
    values = Worth(SERVICE, Objective(metric=metric))
    best = gathered(series, values, clairvoyant.plan(series, values, start, away_s), away_s)
    most = max(gathered(series, values, plan, away_s) for plan in every_schedule(series, start, away_s))
    assert best >= most - 1e-9 * max(1.0, most)


@given(LEVELS, COSTS, METRICS, MODES, st.sampled_from([0.0, 3.0, 10.0]), st.sampled_from([0.0, 0.1]))
def test_no_threshold_and_no_static_mode_beats_it(
    levels: list[int], away_s: float, metric: Metric, start: Mode, hold_s: float, margin: float
) -> None:
    """On any series, neither the mode that it begins with nor any threshold gathers more."""
    series = Series(step_s=1.0, levels=levels)
    values = Worth(SERVICE, Objective(metric=metric))
    best = gathered(series, values, clairvoyant.plan(series, values, start, away_s), away_s)
    threshold = choosers.drive(series, Threshold(worth=values, hold_s=hold_s, margin=margin), start, away_s)
    for other in (Schedule(start=start), threshold):
        assert best >= gathered(series, values, other, away_s) - 1e-9 * max(1.0, best)


@given(LEVELS, METRICS, MODES)
def test_free_switches_make_every_second_the_best(levels: list[int], metric: Metric, start: Mode) -> None:
    """Where a switch costs nothing the schedule has, at each step, the worth of the best mode there."""
    series = Series(step_s=1.0, levels=levels)
    values = Worth(SERVICE, Objective(metric=metric))
    found = gathered(series, values, clairvoyant.plan(series, values, start, 0.0), 0.0)
    assert found == pytest.approx(sum(max(values.rows[level]) for level in levels))


@given(LEVELS, COSTS, MODES)
def test_a_schedule_can_be_followed(levels: list[int], away_s: float, start: Mode) -> None:
    """Each switch goes to another mode, and none begins before the one before it is over."""
    series = Series(step_s=1.0, levels=levels)
    plan = clairvoyant.plan(series, Worth(SERVICE, Objective()), start, away_s)
    modes = [start, *(move.mode for move in plan.moves)]
    assert all(one != two for one, two in itertools.pairwise(modes))
    assert all(one.step + away_s <= two.step for one, two in itertools.pairwise(plan.moves) if away_s >= 1)


def test_it_switches_before_the_load_comes() -> None:
    """It uses the idle steps before a busy hour: the switch is over when the load is there."""
    series = Series(step_s=1.0, levels=[1] * 20 + [0] * 4 + [8] * 200)
    plan = clairvoyant.plan(series, Worth(SERVICE, Objective(metric=Metric.THROUGHPUT)), TREE, 4.0)
    assert plan.moves == (Move(step=20, mode=NONE),)


def test_what_does_not_pay_is_not_done() -> None:
    """A mode that is better for a shorter time than the switch takes is left alone."""
    series = Series(step_s=1.0, levels=[1] * 50 + [4] * 10 + [1] * 50)
    assert clairvoyant.plan(series, Worth(SERVICE, Objective()), TREE, 10.0).moves == ()
    assert clairvoyant.plan(series, Worth(SERVICE, Objective()), TREE, 0.1).moves[0].mode == CHAIN


@given(LEVELS, COSTS, METRICS, MODES)
def test_time_by_level_adds_up(levels: list[int], away_s: float, metric: Metric, start: Mode) -> None:
    """What a schedule's times say of each mode and level is what its stretches are made of, and all of the series."""
    series = Series(step_s=1.0, levels=levels)
    values = Worth(SERVICE, Objective(metric=metric))
    plan = clairvoyant.plan(series, values, start, away_s)
    spent = schedule.times(series, plan, away_s)
    total = sum(seconds for mode in spent.served.values() for seconds in mode.values()) + spent.away_s
    assert total == pytest.approx(series.span_s)
    worth = sum(
        values.of(mode, level) * seconds for mode, part in spent.served.items() for level, seconds in part.items()
    )
    assert worth == pytest.approx(gathered(series, values, plan, away_s))
