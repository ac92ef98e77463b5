"""Medians, means and differences with their intervals, held against scipy and numpy."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from specctl.measure import intervals
from specctl.measure.chance import seeded
from specctl.measure.intervals import Interval
from tests.examples import examples

VALUES = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=30)


@given(ratio=st.floats(0.0001, 0.9999), freedom=st.floats(0.5, 300))
@settings(max_examples=examples(100), deadline=None)
def test_t_quantiles_are_scipys(ratio: float, freedom: float) -> None:
    """Student's quantiles agree with scipy's, for few and for many degrees of freedom, whole or not."""
    assert intervals.t_quantile(ratio, freedom) == pytest.approx(stats.t.ppf(ratio, freedom), rel=1e-8, abs=1e-7)


@given(x=st.floats(0, 1), a=st.floats(0.1, 100), b=st.floats(0.1, 100))
@settings(max_examples=examples(100), deadline=None)
def test_incomplete_beta_is_scipys(x: float, a: float, b: float) -> None:
    """The incomplete beta function below it agrees with scipy's."""
    assert intervals.beta_ratio(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("ratio", "freedom"), [(0.0, 3.0), (1.0, 3.0), (0.5, 0.0)])
def test_impossible_quantiles_are_refused(ratio: float, freedom: float) -> None:
    """A ratio that is none, or no freedom, is an error and no number."""
    with pytest.raises(ValueError, match="quantile"):
        intervals.t_quantile(ratio, freedom)


@given(values=VALUES, ratio=st.floats(0, 1))
@settings(max_examples=examples(100), deadline=None)
def test_quantiles_are_numpys(values: list[float], ratio: float) -> None:
    """Quantiles lie between the two nearest values as numpy's do."""
    assert intervals.quantile(values, ratio) == pytest.approx(float(np.quantile(values, ratio)), rel=1e-9)


def test_difference_is_welchs() -> None:
    """A difference is Welch's interval of the logarithms, told as a part of A."""
    a, b = [100.0, 104.0, 98.0, 101.0], [109.0, 118.0, 111.0]
    found = intervals.relative_difference(a, b)
    other = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert found.low == pytest.approx(math.expm1(other.low), rel=1e-9)
    assert found.high == pytest.approx(math.expm1(other.high), rel=1e-9)


def test_difference_of_what_is_not_above_zero_is_unknown() -> None:
    """Zeros have no ratio: unknown, and not infinite."""
    assert intervals.relative_difference([0.0, 1.0], [1.0, 2.0]) is None
    assert intervals.relative_difference([], [1.0]) is None


def test_one_value_has_no_interval() -> None:
    """One run bounds nothing."""
    assert intervals.median_of([3.0]) == Interval(centre=3.0)
    found = intervals.relative_difference([2.0], [3.0])
    assert found is not None
    assert found.centre == pytest.approx(0.5)
    assert (found.low, found.high, found.confidence) == (None, None, None)


def test_nothing_has_no_centre() -> None:
    """Of no value there is no centre, and no zero either."""
    with pytest.raises(ValueError, match="nothing"):
        intervals.median_of([])


def test_confidence_is_what_few_values_can_give() -> None:
    """The range of three values is told as 75 %, of six and more as the 95 % that was asked for."""
    three, six = intervals.median_of([1.0, 2.0, 3.0]), intervals.median_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (three.low, three.centre, three.high, three.confidence) == (1.0, 2.0, 3.0, 0.75)
    assert six.confidence == 0.95


def test_few_values_are_resampled_in_every_way() -> None:
    """Of few values the bounds are those of all resamples, as many draws find them, and no seed matters."""
    values, chance = [4.0, 1.0, 7.0, 2.0, 11.0], seeded(2)
    drawn = [intervals.quantile(chance.choices(values, k=5), 0.5) for _ in range(20_000)]
    found = intervals.bootstrap(values, median, seed=1)
    assert found == (intervals.quantile(drawn, 0.025), intervals.quantile(drawn, 0.975))
    assert found == intervals.bootstrap(values, median, seed=99)


def test_bootstrap_is_scipys() -> None:
    """Of many values, the bounds agree with scipy's percentile bootstrap as far as two seeds agree."""
    chance = seeded(5)
    values = [chance.gauss(100.0, 8.0) for _ in range(60)]
    found = intervals.median_of(values, seed=1)
    other = stats.bootstrap((values,), np.median, method="percentile", rng=2).confidence_interval
    assert found.low == pytest.approx(other.low, abs=0.8)
    assert found.high == pytest.approx(other.high, abs=0.8)


def test_same_seed_same_interval() -> None:
    """An interval is told again by its seed."""
    values = [1.0, 5.0, 2.0, 9.0, 4.0, 7.0, 3.0]
    assert intervals.median_of(values, seed=3) == intervals.median_of(values, seed=3)


@pytest.mark.parametrize(("count", "confidence"), [(3, 0.75), (5, 0.9375), (8, 0.95)])
def test_intervals_hold_the_true_median_as_often_as_they_say(count: int, confidence: float) -> None:
    """Over many draws, the interval holds the true median about as often as its confidence says, and never far less."""
    chance, held, draws = seeded(11), 0, examples(300)
    for draw in range(draws):
        values = [chance.expovariate(1.0) for _ in range(count)]
        low, high = intervals.bootstrap(values, lambda each: intervals.quantile(each, 0.5), seed=draw, resamples=200)
        held += low <= math.log(2) <= high
    assert held / draws > confidence - 0.08
