"""All policies over one load: who is compared with what, and what must hold of any load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.replay import compare, ours
from specctl.control.replay.compare import (
    CLAIRVOYANT,
    HINDSIGHT,
    HYSTERESIS,
    OURS,
    STATIC,
    THRESHOLD,
    Comparison,
    Row,
    Setting,
    Task,
)
from specctl.control.replay.load import Requests, Series
from specctl.control.replay.outage import LIVE, Outage
from tests.examples import examples
from tests.unit.control.replay.loads import CHAIN, MODES, NONE, OUTAGES, SERVICE, TREE, loads, requests

SETTING = Setting(service=SERVICE, objective=Objective(), outage=LIVE, start=TREE)
METRICS = st.sampled_from(Metric)


def compared(setting: Setting, load: Requests | Series) -> Comparison:
    """Compare on a load, with ours among the policies."""
    return compare.compare(setting, load, ours.maker, compare.statics(setting, load))


def test_every_policy_has_its_row() -> None:
    """The static modes in the model's order, the thresholds, ours, and the yardstick last."""
    found = compared(SETTING, Series(step_s=1.0, levels=[1] * 100))
    expected = [STATIC] * 3 + [THRESHOLD, HYSTERESIS, OURS, CLAIRVOYANT]
    assert [row.policy for row in found.rows] == expected
    assert [row.name for row in found.rows] == ["none", "dflash", "ddtree:tree_budget=16", *expected[3:]]
    assert (found.yardstick.policy, found.queueing) == (CLAIRVOYANT, False)
    queued = compared(SETTING, requests((0.0, 10, 10), span_s=5.0))
    assert (queued.yardstick.policy, queued.queueing) == (HINDSIGHT, True)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=120), OUTAGES, METRICS, MODES)
@settings(max_examples=examples(50))
def test_nobody_beats_the_clairvoyant_schedule(levels: list[int], outage: Outage, metric: Metric, start: Mode) -> None:
    """On a concurrency that is given, no policy that begins where the schedule begins is worth more, ours neither."""
    setting = Setting(service=SERVICE, objective=Objective(metric=metric), outage=outage, start=start)
    found = compared(setting, Series(step_s=1.0, levels=levels))
    most = found.yardstick.score.value
    mine = [row for row in found.rows if row.mode is None or row.mode == start]
    assert [row.name for row in mine if row.score.value > most + 1e-9 * max(1.0, most)] == []
    assert [row.name for row in mine if (found.regret(row) or 0.0) < -1e-9] == []


@given(loads(), OUTAGES, METRICS, MODES)
@settings(max_examples=examples(30))
def test_with_queueing_the_yardstick_is_the_best_that_was_tried(
    load: Requests, outage: Outage, metric: Metric, start: Mode
) -> None:
    """It is never worse than a static mode, and every policy serves every token in the end."""
    setting = Setting(service=SERVICE, objective=Objective(metric=metric), outage=outage, start=start)
    found = compared(setting, load)
    fixed = [row.score.value for row in found.rows if row.mode is not None]
    assert found.yardstick.score.value >= max(fixed)
    assert all(row.score.mean_s is not None and row.score.mean_s > 0 for row in found.rows)
    assert all(row.score.tokens <= load.tokens + 1e-6 for row in found.rows)


@pytest.mark.parametrize("level", [0, 1, 3, 4, 8, 40])
@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("outage", [LIVE, Outage(seconds=5.0, drains=True), Outage(seconds=480.0, drains=True)])
def test_under_a_steady_load_ours_stays_in_the_best_mode(level: int, metric: Metric, outage: Outage) -> None:
    """Begun in the mode that is best at a load that never changes, ours never switches."""
    series = Series(step_s=1.0, levels=[level] * 5000)
    setting = Setting(service=SERVICE, objective=Objective(metric=metric), outage=outage, start=NONE)
    setting = replace(setting, start=compare.best_mode(compare.statics(setting, series)))
    chosen = compare.driven(setting, series, ours.maker(setting))
    assert chosen.moves == ()


@pytest.mark.parametrize("metric", Metric)
def test_under_a_steady_load_ours_leaves_the_worst_mode(metric: Metric) -> None:
    """Begun in the worst mode, ours is in the best one before long, and stays."""
    series = Series(step_s=1.0, levels=[1] * 5000)
    setting = Setting(
        service=SERVICE, objective=Objective(metric=metric), outage=Outage(seconds=5.0, drains=True), start=NONE
    )
    chosen = compare.driven(setting, series, ours.maker(setting))
    assert [move.mode for move in chosen.moves] == [TREE]
    assert chosen.moves[0].step < 60


def test_the_same_load_gives_the_same_comparison() -> None:
    """Nothing is left to chance: two runs are equal in every figure and every second."""
    load = requests(*((number / 3, 200, 20 + number % 50) for number in range(300)))
    series = Series(step_s=1.0, levels=[number % 11 for number in range(600)])
    assert compared(SETTING, load) == compared(SETTING, load)
    assert compared(SETTING, series) == compared(SETTING, series)


def test_tasks_can_be_worked_out_in_any_order() -> None:
    """A runner that works from the last task to the first gives the same comparison."""

    def backwards(work: Callable[[Task], Row], tasks: Sequence[Task]) -> Iterable[Row]:
        return reversed([work(task) for task in reversed(tasks)])

    series = Series(step_s=1.0, levels=[1, 4, 8, 1] * 50)
    fixed = compare.statics(SETTING, series)
    found = compare.compare(SETTING, series, ours.maker, fixed, run=backwards)
    assert found == compare.compare(SETTING, series, ours.maker, fixed)


def test_spans_say_what_a_server_did() -> None:
    """From the first second to the last request, in order and without a gap; None while it switched."""
    load = requests((0.0, 0, 100), (30.0, 0, 500), span_s=40.0)
    setting = replace(SETTING, start=NONE, outage=Outage(seconds=2.0, drains=True))
    row = compared(setting, load).rows[3]
    assert row.policy == THRESHOLD
    assert row.spans[0] == (0.0, 0.0, NONE)
    assert [mode for _, _, mode in row.spans] == [NONE, None, TREE]
    assert all(one[1] == two[0] for one, two in zip(row.spans, row.spans[1:], strict=False))
    assert row.spans[-1][1] == 40.0


def test_static_modes_are_told_apart() -> None:
    """The best, the worst and the fastest static mode are those of their figures; a row of another policy has no mode."""
    load = requests(*((number / 10, 0, 100) for number in range(200)))
    fixed = compare.statics(replace(SETTING, objective=Objective(metric=Metric.THROUGHPUT)), load)
    by_value = {row.mode: row.score.value for row in fixed}
    assert by_value[compare.best_mode(fixed)] == max(by_value.values())
    assert by_value[compare.worst_mode(fixed)] == min(by_value.values())
    assert compare.fastest_mode(fixed) == min(fixed, key=lambda row: row.score.mean_s or math.inf).mode
    assert {row.mode for row in fixed} == {NONE, CHAIN, TREE}
    with pytest.raises(ValueError, match="has its mode"):
        compare.best_mode([replace(fixed[0], mode=None)])


def test_free_switching_is_the_most_that_can_be_won() -> None:
    """Half the time the tree is best and half the time none: what both are worth over the best that one of them is."""
    setting = replace(SETTING, objective=Objective(metric=Metric.THROUGHPUT))
    found = compared(setting, Series(step_s=1.0, levels=[1, 8] * 50))
    assert found.free_gain_ratio == pytest.approx((100 + 280) / (40 + 280) - 1)
    assert compared(setting, Series(step_s=1.0, levels=[0, 0])).free_gain_ratio is None
