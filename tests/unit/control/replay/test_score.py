"""What a policy's figures are made of."""

from __future__ import annotations

import math
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.objective import Metric, Objective
from specctl.control.replay import schedule, score
from specctl.control.replay.load import Series
from specctl.control.replay.outage import Outage
from specctl.control.replay.queueing import Server
from specctl.control.replay.schedule import Move, Schedule
from specctl.control.replay.worth import Worth
from tests.unit.control.replay.loads import NONE, SERVICE, TREE, flat, requests


def test_a_series_is_scored() -> None:
    """Worth by the second, tokens, seconds a token with and without those lost, and the 95th percentile by token."""
    series = Series(step_s=1.0, levels=[1, 1, 4, 4, 4, 4])
    plan = Schedule(start=TREE, moves=(Move(step=2, mode=NONE),))
    values = Worth(SERVICE, Objective(metric=Metric.THROUGHPUT))
    found = score.of_series(SERVICE, series, values, schedule.times(series, plan, 1.0))
    assert astuple(found) == pytest.approx((650 / 6, 650.0, 18 / 650, 4 / 150, 1, 1.0))


def test_latency_weighs_each_second_of_a_request_alike() -> None:
    """For latency the worth is the tokens a second that one request gets."""
    series = Series(step_s=1.0, levels=[1, 4])
    values = Worth(SERVICE, Objective(metric=Metric.LATENCY))
    found = score.of_series(SERVICE, series, values, schedule.times(series, Schedule(start=NONE), 0.0))
    assert found.value == pytest.approx((40 + 150 / 4) / 2)


def test_an_idle_series_has_no_time_per_token() -> None:
    """Where nothing was served, a time per token is not known, and regret neither."""
    series = Series(step_s=1.0, levels=[0, 0])
    values = Worth(SERVICE, Objective())
    found = score.of_series(SERVICE, series, values, schedule.times(series, Schedule(start=NONE), 0.0))
    assert (found.mean_s, found.p95_s, found.tokens) == (None, None, 0.0)
    assert score.regret_ratio(found.value, 0.0) is None


def test_a_queue_is_scored_by_what_requests_felt() -> None:
    """The time of a request runs from its arrival, waiting and the switch included, and counts by its tokens."""
    load = requests((0.0, 0, 20), (1.5, 0, 10), span_s=2.0)
    server = Server(flat(10.0), load, NONE)
    server.advance(1.0)
    server.switch(NONE, Outage(seconds=3.0, drains=True))
    server.advance(math.inf)
    found = score.of_queue(server, load, 20.0, Metric.LATENCY)
    assert astuple(found) == pytest.approx((30 / 6.5, 20.0, 6.5 / 30, 0.45, 1, 4.0))
    assert score.of_queue(server, load, 20.0, Metric.THROUGHPUT).value == 20.0


@pytest.mark.parametrize(("value", "regret"), [(97.0, 0.03), (100.0, 0.0), (110.0, -0.1)])
def test_regret_is_what_is_missed(value: float, regret: float) -> None:
    """Regret is a part of the yardstick, below zero where that is beaten."""
    assert score.regret_ratio(value, 100.0) == pytest.approx(regret)


def test_a_quantile_goes_by_weight() -> None:
    """The value is the least that is not exceeded by that share of the weight; without any weight it is not known."""
    rows = [(3.0, 1.0), (1.0, 94.0), (2.0, 5.0)]
    assert [score.quantile(rows, share) for share in (0.5, 0.95, 1.0)] == [1.0, 2.0, 3.0]
    assert score.quantile([], 0.95) is None


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 10)), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_one_of_the_values(rows: list[tuple[float, float]], share: float) -> None:
    """It is one of the values, and at least that share of the weight does not exceed it."""
    found = score.quantile(rows, share)
    assert found in {value for value, _ in rows}
    assert found is not None
    assert sum(weight for value, weight in rows if value <= found) >= share * sum(weight for _, weight in rows) * (
        1 - 1e-9
    )
