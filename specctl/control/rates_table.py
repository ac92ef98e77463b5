"""A throughput model by points: tokens a second of a server at some concurrencies, mode by mode."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.rates import Estimate, Source

Point = tuple[float, float]
ERRORS = 2.0
"""So many standard errors hold the truth, 19 times of 20."""


class Beyond(enum.Enum):
    """What holds outside of a mode's points.

    UNKNOWN: nothing is known there. STAYS, a model file's own rule: above the last point the rate stays, below the first it goes
    down to nothing. Less than one request lies between nothing and a point at one, and is not outside.
    """

    UNKNOWN = "unknown"
    STAYS = "stays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Points (concurrency, tokens a second), rising; between two the rate is linear, and from no request to a first point at one.

    At most `max_running` requests run, and the others wait: above it the rate is that at `max_running`. `spread`: how far the truth
    may be off, as a ratio of the rate, beside what measuring it left in doubt: `errors` are standard errors, as ratios likewise, at
    some concurrencies, and twice the error is added. `source`: of every estimate.
    """

    points: Mapping[Mode, Sequence[Point]]
    max_running: int | None = None
    beyond: Beyond = Beyond.UNKNOWN
    spread: float = 0.0
    source: Source = Source.CALIBRATED
    errors: Mapping[Mode, Sequence[Point]] = field(default_factory=dict)

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes that have points."""
        return tuple(self.points)

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the rate; None for another mode, and beyond what was measured unless the rate stays there."""
        rate = self._rate(mode, concurrency)
        if rate is None:
            return None
        spread = min(1.0, self.spread + ERRORS * self._error(mode, concurrency))
        return Estimate(value=rate, low=rate * (1 - spread), high=rate * (1 + spread), source=self.source)

    def _error(self, mode: Mode, concurrency: float) -> float:
        """Return the standard error there: the larger one of the nearest points, for what lies between mixes them."""
        errors = self.errors.get(mode, ())
        below = [error for at, error in errors if at <= concurrency][-1:]
        above = [error for at, error in errors if at >= concurrency][:1]
        return max([*below, *above], default=0.0)

    def _rate(self, mode: Mode, concurrency: float) -> float | None:
        points = self.points.get(mode)
        if not points or concurrency <= 0:
            return None
        load = concurrency if self.max_running is None else min(concurrency, self.max_running)
        if self.beyond is Beyond.UNKNOWN and load < points[0][0] and points[0][0] > 1:
            return None
        before_c, before = 0.0, 0.0
        for at, rate in points:
            if load <= at:
                return before + (rate - before) * (load - before_c) / (at - before_c)
            before_c, before = at, rate
        return before if self.beyond is Beyond.STAYS else None
