"""A Prometheus histogram: counts by upper edge, their sum and their number; the edges are those that the real server exposes."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

FIRST_TOKEN_EDGES = (
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    2.0,
    4.0,
    6.0,
    8.0,
    10.0,
    20.0,
    40.0,
    60.0,
    80.0,
    100.0,
    200.0,
    400.0,
)
LATENCY_EDGES = (*FIRST_TOKEN_EDGES, 600.0, 1200.0, 1800.0, 2400.0)
TOKEN_GAP_EDGES = (
    *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
)
TOKEN_COUNT_EDGES = (
    *(100.0, 300.0, 500.0, 700.0, 1000.0, 1500.0, 2000.0),
    *(1000.0 * thousands for thousands in range(3, 11)),
    *(2500.0 * step for step in range(5, 13)),
    *(1000.0 * thousands for thousands in (35, 40, 60, 80, 100, 200, 300, 400, 600, 800, 1000, 1100)),
)
QUEUE_EDGES = (
    *(0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0),
    *(10.0 * tens for tens in range(3, 11)),
    *(100.0 * hundreds for hundreds in range(2, 11)),
    *(1200.0, 1400.0, 1600.0, 1800.0, 2000.0, 2500.0, 3000.0),
)
STAGE_EDGES = tuple(0.001 * 1.62**power for power in range(30))
LOADS_EDGES = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A histogram as exposed: cumulative counts by upper edge (the last edge is infinity), sum and count."""

    buckets: tuple[tuple[float, int], ...]
    total: float
    count: int


class Histogram:
    """Collects values into the buckets of fixed upper edges."""

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = (*edges, float("inf"))
        self._counts = [0] * len(self._edges)
        self._total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, several times where one measurement stands for several."""
        self._counts[bisect.bisect_left(self._edges, value)] += times
        self._total += value * times

    def read(self) -> Distribution:
        """Return what has been collected."""
        cumulative = tuple(itertools.accumulate(self._counts))
        return Distribution(
            buckets=tuple(zip(self._edges, cumulative, strict=True)), total=self._total, count=cumulative[-1]
        )
