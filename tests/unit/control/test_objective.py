"""Objectives: what each metric weighs, and what a floor does."""

from __future__ import annotations

import pytest

from specctl.control.objective import Metric, Objective

LATENCY, THROUGHPUT = Objective(), Objective(metric=Metric.THROUGHPUT)


def test_latency_is_the_default_and_counts_what_one_request_gets() -> None:
    """800 tokens a second for eight requests are worth 100; of throughput they are worth 800."""
    assert LATENCY.worth(800.0, 8.0, capacity=0.0) == 100.0
    assert THROUGHPUT.worth(800.0, 8.0, capacity=0.0) == 800.0


@pytest.mark.parametrize("objective", [LATENCY, THROUGHPUT, Objective(floor=5.0)])
def test_without_a_request_nothing_is_worth_anything(objective: Objective) -> None:
    """An idle server serves nobody."""
    assert objective.worth(0.0, 0.0, capacity=100.0) == 0.0


def test_a_floor_on_capacity_makes_a_narrow_mode_worth_less() -> None:
    """Under latency, a mode that can never serve 1,000 tokens a second loses to one that can."""
    floor = Objective(floor=1000.0)
    assert floor.worth(100.0, 1.0, capacity=500.0) == 50.0
    assert floor.worth(80.0, 1.0, capacity=2000.0) == 80.0


def test_a_floor_on_speed_makes_a_crowded_mode_worth_less() -> None:
    """Under throughput, requests that get half of the floor count half."""
    floor = Objective(metric=Metric.THROUGHPUT, floor=20.0)
    assert floor.worth(640.0, 64.0, capacity=640.0) == 320.0
    assert floor.worth(640.0, 32.0, capacity=640.0) == 640.0


def test_a_floor_is_above_zero() -> None:
    """A floor of nothing is no floor."""
    with pytest.raises(ValueError, match="floor"):
        Objective(floor=0.0)
