"""Centres of measured values and their intervals: medians by bootstrap, differences by Welch's t; chance comes from a given seed.

Used by bench, ab and calibrate. Values are plain numbers of one unit, one a run; nothing here knows what they measure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance

from specctl.measure.chance import seeded

CONFIDENCE = 0.95
RESAMPLES = 2000
# Six values have 462 different resamples, seven 1,716.
MOST_EXACT = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A centre with its bounds (None: one value alone bounds nothing) and the confidence that the bounds really have."""

    centre: float
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    count: int = 1


def quantile(values: Sequence[float], ratio: float) -> float:
    """Return a quantile, straight between the two nearest values (Hyndman and Fan's type 7, numpy's default).

    Raises ValueError where there is no value.
    """
    if not values:
        raise ValueError("no quantile of nothing")
    ordered = sorted(values)
    place = ratio * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def bootstrap(
    values: Sequence[float],
    centre: Callable[[Sequence[float]], float],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Return the percentile bootstrap's bounds of a centre (Efron and Tibshirani 1993, ch. 13).

    Of few values every resample there is gets its weight, and chance plays no part; of more, so many are drawn from the seed.
    The order of the values must not matter to the centre.
    """
    tail = (1.0 - confidence) / 2.0
    if len(values) <= MOST_EXACT:
        return _exact(values, centre, tail)
    chance = seeded(seed)
    drawn = [centre(chance.choices(values, k=len(values))) for _ in range(resamples)]
    return quantile(drawn, tail), quantile(drawn, 1.0 - tail)


def _exact(values: Sequence[float], centre: Callable[[Sequence[float]], float], tail: float) -> tuple[float, float]:
    """Return the bounds over all resamples: each choice of places, as often as its orders make it."""
    size = len(values)
    weights: dict[float, float] = {}
    for places in itertools.combinations_with_replacement(range(size), size):
        orders = math.factorial(size)
        for place in set(places):
            orders //= math.factorial(places.count(place))
        found = centre([values[place] for place in places])
        weights[found] = weights.get(found, 0.0) + orders / size**size
    ordered = sorted(weights)
    sums = list(itertools.accumulate(weights[value] for value in ordered))
    low = next(value for value, total in zip(ordered, sums, strict=True) if total >= tail)
    high = next((value for value, total in zip(ordered, sums, strict=True) if total >= 1.0 - tail), ordered[-1])
    return low, high


def median_of(values: Sequence[float], *, seed: int = 0, confidence: float = CONFIDENCE) -> Interval:
    """Return the median with its bootstrap interval.

    The confidence told is no more than the values can give: even the range of n values holds the true median with 1 - 2^(1-n)
    alone (0.75 of three, 0.94 of five, 0.97 of six: David and Nagaraja 2003, §7.1). Raises ValueError without a value.
    """
    count = len(values)
    if count < 2:
        return Interval(centre=quantile(values, 0.5), count=count)
    low, high = bootstrap(values, median, seed=seed, confidence=confidence)
    return Interval(
        centre=median(values), low=low, high=high, confidence=min(confidence, 1 - 2.0 ** (1 - count)), count=count
    )


def relative_difference(a: Sequence[float], b: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return by which part `b` is more than `a` (0.05: 5 % more), by Welch's t interval on logarithms (Welch 1947).

    Logarithms make it a ratio that is the same seen from either side, up to its sign. None where a value is not above zero.
    The bounds are None where either side has one value alone.
    """
    if not a or not b or min(*a, *b) <= 0:
        return None
    logs_a, logs_b = [math.log(each) for each in a], [math.log(each) for each in b]
    shift = fmean(logs_b) - fmean(logs_a)
    count = min(len(a), len(b))
    if count < 2:
        return Interval(centre=math.expm1(shift), count=count)
    part_a, part_b = variance(logs_a) / len(a), variance(logs_b) / len(b)
    spread = part_a + part_b
    if spread == 0:
        return Interval(
            centre=math.expm1(shift), low=math.expm1(shift), high=math.expm1(shift), confidence=confidence, count=count
        )
    freedom = spread**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    reach = t_quantile(0.5 + confidence / 2, freedom) * math.sqrt(spread)
    return Interval(
        centre=math.expm1(shift),
        low=math.expm1(shift - reach),
        high=math.expm1(shift + reach),
        confidence=confidence,
        count=count,
    )


def t_cdf(value: float, freedom: float) -> float:
    """Return Student's distribution function, by the incomplete beta function (Abramowitz and Stegun 26.7.1)."""
    half = 0.5 * beta_ratio(freedom / (freedom + value * value), freedom / 2, 0.5)
    return 1.0 - half if value > 0 else half


def t_quantile(ratio: float, freedom: float) -> float:
    """Return Student's quantile by bisection, to about 1e-12 of its size; raises ValueError outside 0 to 1 or without freedom."""
    if not 0 < ratio < 1 or not freedom > 0:
        raise ValueError("a quantile needs a ratio between 0 and 1, and degrees of freedom above 0")
    if ratio == 0.5:
        return 0.0
    if ratio < 0.5:
        return -t_quantile(1 - ratio, freedom)
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < ratio:
        low, high = high, high * 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, freedom) < ratio else (low, middle)
    return (low + high) / 2


def beta_ratio(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22, Lentz's method)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    tiny, enough = 1e-300, 1e-16
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1.0)) or tiny)
    found = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / ((1.0 + term * d) or tiny)
            c = (1.0 + term / c) or tiny
            found *= c * d
        if abs(c * d - 1.0) < enough:
            break
    return found
