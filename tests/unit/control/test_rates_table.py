"""A throughput model by points: linear between them, and silent beyond."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import Mode, mode, parse
from specctl.control.rates import Estimate, Source
from specctl.control.rates_table import Beyond, Table

CHAIN, TREE = mode("dflash"), parse("ddtree:tree_budget=16")
TABLE = Table(points={CHAIN: ((2.0, 100.0), (4.0, 160.0), (8.0, 200.0))}, max_running=64)


@pytest.mark.parametrize(("concurrency", "expected"), [(2.0, 100.0), (3.0, 130.0), (8.0, 200.0)])
def test_a_table_is_linear_between_its_points(concurrency: float, expected: float) -> None:
    """Between two points the rate is linear."""
    found = TABLE.tokens_s(CHAIN, concurrency)
    assert found == Estimate(value=expected, low=expected, high=expected, source=Source.CALIBRATED)


def test_above_its_last_point_a_table_knows_nothing_unless_it_is_the_world() -> None:
    """A calibration file does not extrapolate; a model file's rate stays."""
    assert TABLE.tokens_s(CHAIN, 8.1) is None
    stays = replace(TABLE, beyond=Beyond.STAYS).tokens_s(CHAIN, 1e4)
    assert stays is not None
    assert stays.value == 200.0


def test_what_waits_does_not_change_the_rate() -> None:
    """Above max_running the others wait, so that the rate is that at max_running."""
    table = replace(TABLE, max_running=6)
    assert table.tokens_s(CHAIN, 500.0) == table.tokens_s(CHAIN, 6.0)


@pytest.mark.parametrize(("wanted", "concurrency"), [(TREE, 4.0), (CHAIN, 0.0)])
def test_a_table_knows_no_other_mode_and_no_idle_rate(wanted: Mode, concurrency: float) -> None:
    """Unknown is None, and no request has no rate."""
    assert TABLE.tokens_s(wanted, concurrency) is None


def test_an_estimate_lies_within_its_bounds() -> None:
    """Bounds that do not hold the value are a mistake of ours."""
    with pytest.raises(ValueError, match="low <= value"):
        Estimate(value=1.0, low=2.0, high=3.0, source=Source.PRIOR)


def test_below_the_first_point_a_calibration_knows_nothing() -> None:
    """What was measured from four requests on says nothing of two; from one on, half a request is between nothing and one."""
    points = {CHAIN: ((4.0, 400.0), (8.0, 600.0))}
    assert Table(points=points).tokens_s(CHAIN, 2) is None
    assert Table(points={CHAIN: ((1.0, 100.0),)}).tokens_s(CHAIN, 0.5) is not None
    stays = Table(points=points, beyond=Beyond.STAYS).tokens_s(CHAIN, 2)
    assert stays is not None
    assert stays.value == 200.0
