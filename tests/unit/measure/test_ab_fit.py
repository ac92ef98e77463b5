"""The fit of arm and drift: against numpy and scipy, against drift, and where there is nothing to fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specctl.measure import ab_design, ab_fit
from specctl.measure.chance import seeded

ORDER = ab_design.order(2, 2, seed=0)


def values(spread: float, effect: float, slope: float, seed: int, order: Sequence[int] = ORDER) -> list[float]:
    """Return throughputs with a normal spread, B better by a part, and a drift a segment."""
    chance = seeded(seed)
    return [100 * math.exp(chance.gauss(0, spread) + slope * at) * (1 + effect * arm) for at, arm in enumerate(order)]


@given(seed=st.integers(0, 10_000), arms=st.integers(2, 3), cycles=st.integers(1, 4))
def test_as_numpy_and_scipy_say(seed: int, arms: int, cycles: int) -> None:
    """Difference, standard error and p are those of numpy's least squares with scipy's t."""
    order = ab_design.order(arms, cycles, seed)
    seen = values(0.03, 0.1, 0.01, seed, order)
    fit = ab_fit.fit(order, seen)
    assert fit is not None
    found = ab_fit.difference(fit, 0, arms - 1)

    design = np.array([[*(float(arm == each) for each in range(arms)), at] for at, arm in enumerate(order)])
    logs = np.log(seen)
    solved, rest, _, _ = np.linalg.lstsq(design, logs, rcond=None)
    freedom = len(order) - design.shape[1]
    contrast = np.zeros(arms + 1)
    contrast[0], contrast[arms - 1] = -1.0, 1.0
    error = math.sqrt(float(rest[0]) / freedom * float(contrast @ np.linalg.inv(design.T @ design) @ contrast))
    shift = float(contrast @ solved)
    reach = stats.t.ppf(0.975, freedom) * error

    assert fit.freedom == freedom
    assert found.ratio == pytest.approx(math.expm1(shift), rel=1e-6, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((math.expm1(shift - reach), math.expm1(shift + reach)), rel=1e-6)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(shift) / error, freedom), rel=1e-6, abs=1e-12)


@given(slope=st.floats(-0.2, 0.2), effect=st.floats(-0.3, 0.3))
def test_steady_drift_changes_nothing(slope: float, effect: float) -> None:
    """A drift of any size that goes straight neither moves the difference nor widens it, and is told."""
    fit = ab_fit.fit(ORDER, values(0.0, effect, slope, 0))
    assert fit is not None
    found = ab_fit.difference(fit, 0, 1)
    assert found.ratio == pytest.approx(effect, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((effect, effect), abs=1e-6)
    assert found.drift == pytest.approx(math.expm1(slope * 7), abs=1e-6)


def test_the_same_in_every_segment_is_no_difference() -> None:
    """Two arms whose figure is the same number each time differ by nothing, and anything would have been seen."""
    fit = ab_fit.fit(ORDER, [2.3] * 8)
    assert fit is not None
    found = ab_fit.difference(fit, 0, 1)
    assert (found.ratio, found.p, found.seen) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    "seen",
    [
        [None] * 8,
        [100.0, None, None, 100.0, None, 100.0, 100.0, None],
        [100.0] * 7 + [0.0],
        [1.0, 2.0, None, None] + [None] * 4,
    ],
)
def test_too_little_is_no_fit(seen: list[float | None]) -> None:
    """Without a value of each arm, and one to spare, nothing is said; a zero is no throughput."""
    found = ab_fit.fit(ORDER, seen)
    assert found is None or found.segments == sum(value is not None and value > 0 for value in seen) >= 3


@pytest.mark.parametrize("cycles", [2, 3, 6])
def test_what_would_be_seen_is_seen_four_times_in_five(cycles: int) -> None:
    """A true difference as large as the minimum detectable one is significant with a probability of about 80 %."""
    order = ab_design.order(2, cycles, 0)
    spread = 0.02
    plain = ab_fit.fit(order, values(spread, 0.0, 0.0, 1, order))
    assert plain is not None
    error = spread * plain.error(0, 1) / plain.spread
    effect = ab_fit.detectable(error, plain.freedom)
    hits = 0
    for seed in range(400):
        fit = ab_fit.fit(order, values(spread, effect, 0.004, seed, order))
        assert fit is not None
        hits += ab_fit.difference(fit, 0, 1).p < 0.05
    assert 0.74 <= hits / 400 <= 0.86


def test_more_cycles_show_less() -> None:
    """The cycles that are asked for would show what is wanted, one fewer would not, and nothing shows a miracle."""
    fit = ab_fit.fit(ORDER, values(0.05, 0.0, 0.0, 3))
    assert fit is not None
    needed = ab_fit.cycles_for(fit, 0, 1, cycles=2, wanted=0.03)
    assert needed is not None
    assert needed > 2
    error = fit.error(0, 1)
    for cycles, enough in ((needed, True), (needed - 1, False)):
        seen = ab_fit.detectable(error * math.sqrt(2 / cycles), 4 * cycles - 3)
        assert (seen <= 0.03) is enough, cycles
    assert ab_fit.cycles_for(fit, 0, 1, cycles=2, wanted=1e-5) is None


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_holm_is_between_alone_and_bonferroni(ps: list[float]) -> None:
    """An adjusted p is at least its own, at most all of them times it, and keeps the order."""
    adjusted = ab_fit.holm(ps)
    for p, found in zip(ps, adjusted, strict=True):
        assert p <= found <= min(1.0, p * len(ps)) or found == max(adjusted)
    by_rank = sorted(zip(ps, adjusted, strict=True))
    assert [found for _, found in by_rank] == sorted(adjusted)
    assert ab_fit.holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
