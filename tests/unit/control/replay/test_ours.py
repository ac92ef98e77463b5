"""What the agent's policy is told in a replay."""

from __future__ import annotations

import pytest

from specctl.control.mode import mode
from specctl.control.objective import Metric, Objective
from specctl.control.rates import Estimate, Source
from specctl.control.replay import ours
from tests.unit.control.replay.loads import CHAIN, NONE, SERVICE, TREE


def test_the_model_is_taken_at_its_word() -> None:
    """The policy's rates are the server's own, without doubt; of a mode that the server does not have nothing is known."""
    found = ours.Believed(SERVICE)
    assert found.tokens_s(NONE, 4) == Estimate(value=150.0, low=150.0, high=150.0, source=Source.CALIBRATED)
    assert found.tokens_s(mode("ddtree", {"tree_budget": 99}), 4) is None
    assert tuple(found.modes) == (NONE, CHAIN, TREE)


@pytest.mark.parametrize(
    ("load", "metric", "chosen"),
    [
        ({1: 10.0}, Metric.LATENCY, TREE),
        ({4: 10.0}, Metric.LATENCY, CHAIN),
        ({1: 10.0, 8: 20.0}, Metric.THROUGHPUT, NONE),
        ({0: 10.0}, Metric.LATENCY, NONE),
        (None, Metric.LATENCY, TREE),
    ],
)
def test_it_begins_in_the_mode_that_is_worth_most(
    load: dict[float, float] | None, metric: Metric, chosen: object
) -> None:
    """For a load that is known; for any octave of concurrency alike where it is not; the first mode where all are worth nothing."""
    assert ours.prior_choice(SERVICE, Objective(metric=metric), load) == chosen
