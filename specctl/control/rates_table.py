"""A throughput model by points: tokens a second of a server at some concurrencies, mode by mode."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.control.rates import Estimate, Source

Point = tuple[float, float]


class Beyond(enum.Enum):
    """What holds above a mode's last point: nothing is known there, or the rate stays (a model file's own rule)."""

    UNKNOWN = "unknown"
    STAYS = "stays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Points (concurrency, tokens a second), rising; between two the rate is linear, and from no request to the first one too.

    At most `max_running` requests run, and the others wait: above it the rate is that at `max_running`. `spread`: how far the truth
    may be off, as a ratio of the rate. `source`: of every estimate.
    """

    points: Mapping[Mode, Sequence[Point]]
    max_running: int | None = None
    beyond: Beyond = Beyond.UNKNOWN
    spread: float = 0.0
    source: Source = Source.CALIBRATED

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes that have points."""
        return tuple(self.points)

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the rate; None for another mode, and beyond what was measured unless the rate stays there."""
        rate = self._rate(mode, concurrency)
        if rate is None:
            return None
        return Estimate(value=rate, low=rate * (1 - self.spread), high=rate * (1 + self.spread), source=self.source)

    def _rate(self, mode: Mode, concurrency: float) -> float | None:
        points = self.points.get(mode)
        if not points or concurrency <= 0:
            return None
        load = concurrency if self.max_running is None else min(concurrency, self.max_running)
        before_c, before = 0.0, 0.0
        for at, rate in points:
            if load <= at:
                return before + (rate - before) * (load - before_c) / (at - before_c)
            before_c, before = at, rate
        return before if self.beyond is Beyond.STAYS else None
