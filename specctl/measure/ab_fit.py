"""The statistics of an A/B experiment: one figure, one value a segment, fitted as arm × steady drift; differences with intervals.

The unit is the segment, never the request: what happens within one start of the engine is alike, and counting it as independent
would promise what it cannot keep (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013). docs/ab.md tells the
model in words.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.measure.intervals import CONFIDENCE, t_cdf, t_quantile

POWER = 0.8
# A spread below this part of the value is rounding: such segments are the same.
NOTHING = 1e-9
MOST_CYCLES = 500

# A quantile takes a bisection, and experiments ask for the same few again and again.
_quantile = functools.lru_cache(maxsize=256)(t_quantile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Least squares of log(value) on the arm and on the place in the order.

    `levels`: each arm's log value in the middle of the experiment; `slope`: drift of the log value a segment (0 where it could
    not be told from the arms); `spread`: what is left, as a standard deviation of one segment; `freedom`: its degrees of freedom;
    `unscaled`: the inverse of the normal equations' matrix, by arm; `span`: places from the first segment to the last.
    """

    levels: tuple[float, ...]
    slope: float
    spread: float
    freedom: int
    unscaled: tuple[tuple[float, ...], ...]
    segments: int
    span: int

    def difference(self, base: int, other: int) -> float:
        """Return by how much the log value of one arm is above that of another."""
        return self.levels[other] - self.levels[base]

    def error(self, base: int, other: int) -> float:
        """Return the standard error of that difference."""
        grid = self.unscaled
        factor = grid[base][base] + grid[other][other] - 2 * grid[base][other]
        return self.spread * math.sqrt(max(factor, 0.0))

    @property
    def drift(self) -> float:
        """Return by which part the value changed from the first segment to the last by drift alone (0.02: 2 % more)."""
        return math.expm1(self.slope * self.span)


def fit(arms: Sequence[int], values: Sequence[float | None]) -> Fit | None:
    """Fit the segments of an experiment; None where an arm has no value above zero or nothing is left to judge the spread by.

    Segments without a value are left out. The drift is fitted where the segments allow it.
    """
    told = enumerate(zip(arms, values, strict=True))
    rows = [(at, arm, math.log(value)) for at, (arm, value) in told if value is not None and 0 < value < math.inf]
    count = max(arms, default=-1) + 1
    if count < 2 or {arm for _, arm, _ in rows} != set(range(count)):
        return None
    middle = sum(at for at, _, _ in rows) / len(rows)
    design = [[1.0 if arm == place else 0.0 for place in range(count)] + [at - middle] for at, arm, _ in rows]
    logs = [log for _, _, log in rows]
    solved = _least_squares(design, logs)
    if solved is None or len(rows) <= count + 1:
        design = [row[:-1] for row in design]
        solved = _least_squares(design, logs)
    freedom = len(rows) - len(design[0])
    if solved is None or freedom < 1:
        return None
    found, inverse = solved
    left = [log - sum(x * b for x, b in zip(row, found, strict=True)) for row, log in zip(design, logs, strict=True)]
    spread = math.sqrt(sum(rest * rest for rest in left) / freedom)
    return Fit(
        levels=tuple(found[:count]),
        slope=found[count] if len(found) > count else 0.0,
        spread=0.0 if spread < NOTHING else spread,
        freedom=freedom,
        unscaled=tuple(tuple(line[:count]) for line in inverse[:count]),
        segments=len(rows),
        span=rows[-1][0] - rows[0][0],
    )


def _least_squares(design: list[list[float]], logs: list[float]) -> tuple[list[float], list[list[float]]] | None:
    """Return the coefficients and the inverse of XᵀX, by Gauss and Jordan; None where the columns are not independent."""
    size = len(design[0])
    grid = [
        [sum(row[i] * row[j] for row in design) for j in range(size)] + [1.0 if i == j else 0.0 for j in range(size)]
        for i in range(size)
    ]
    for at in range(size):
        best = max(range(at, size), key=lambda row: abs(grid[row][at]))
        grid[at], grid[best] = grid[best], grid[at]
        if abs(grid[at][at]) < NOTHING:
            return None
        grid[at] = [cell / grid[at][at] for cell in grid[at]]
        for row in range(size):
            if row != at:
                times = grid[row][at]
                grid[row] = [cell - times * pivot for cell, pivot in zip(grid[row], grid[at], strict=True)]
    inverse = [line[size:] for line in grid]
    right = [sum(row[i] * log for row, log in zip(design, logs, strict=True)) for i in range(size)]
    return [sum(line[j] * right[j] for j in range(size)) for line in inverse], inverse


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """By which part the value of one arm is above another's (0.12: 12 % more), with its interval of 95 %.

    `p`: how often chance alone would show as much, by Student's t. `seen`: the smallest true difference that would have been found
    with a probability of 80 % (the minimum detectable effect, H. S. Bloom, "Minimum detectable effects", Evaluation Review 19,
    1995). `freedom`, `spread` and `drift` are the fit's.
    """

    ratio: float
    low: float
    high: float
    p: float
    seen: float
    freedom: int
    spread: float
    drift: float


def difference(found: Fit, base: int, other: int) -> Difference:
    """Return the difference of two arms of a fit."""
    shift, error = found.difference(base, other), found.error(base, other)
    if abs(shift) < NOTHING:
        shift = 0.0
    if error == 0.0:
        return Difference(
            ratio=math.expm1(shift), low=math.expm1(shift), high=math.expm1(shift), p=0.0 if shift else 1.0, seen=0.0,
            freedom=found.freedom, spread=found.spread, drift=found.drift,
        )  # fmt: skip
    reach = _quantile(0.5 + CONFIDENCE / 2, found.freedom) * error
    return Difference(
        ratio=math.expm1(shift),
        low=math.expm1(shift - reach),
        high=math.expm1(shift + reach),
        p=2 * (1 - t_cdf(abs(shift) / error, found.freedom)),
        seen=detectable(error, found.freedom),
        freedom=found.freedom,
        spread=found.spread,
        drift=found.drift,
    )


def detectable(error: float, freedom: int) -> float:
    """Return the smallest true difference that is found with a probability of 80 %, as a part, from a standard error of logs."""
    reach = _quantile(0.5 + CONFIDENCE / 2, freedom) + _quantile(POWER, freedom)
    return math.expm1(reach * error)


def cycles_for(found: Fit, base: int, other: int, *, cycles: int, wanted: float) -> int | None:
    """Return the fewest cycles in all that would show a difference of a part `wanted`; None where not even hundreds would."""
    arms = len(found.levels)
    error = found.error(base, other)

    def shows(more: int) -> bool:
        freedom = 2 * arms * more - arms - 1
        return freedom > 0 and detectable(error * math.sqrt(cycles / more), freedom) <= wanted

    if not shows(MOST_CYCLES):
        return None
    low, high = 0, MOST_CYCLES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return p values that allow for how many there are (S. Holm, Scandinavian Journal of Statistics 6, 1979), in their order."""
    ranked = sorted(range(len(ps)), key=lambda at: ps[at])
    adjusted = [1.0] * len(ps)
    highest = 0.0
    for rank, at in enumerate(ranked):
        highest = max(highest, min(1.0, ps[at] * (len(ps) - rank)))
        adjusted[at] = highest
    return tuple(adjusted)
