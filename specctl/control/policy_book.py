"""What every mode is worth at each concurrency while one of them runs, and what it takes to get from each to each other.

A mode that does not run is taken at the low end of its estimate and the one that runs at the high end, so that what is only
uncertain never looks like a gain. Rows are worked out once a concurrency and kept: a replay asks a million times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.control.limits import Limits
from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.policy_types import Costs, Price
from specctl.control.rates import Estimate, Rates

PROBES: Sequence[float] = tuple(float(2**power) for power in range(11))
"""Concurrencies at which a mode's capacity is looked for: 1 to 1024, an octave apart."""
MOST_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Worth per second at one concurrency: of each mode in order, of the best of them, and of the one that runs.

    `regrets`: what each mode falls short of the best by, beyond the tolerance. `leads`: what each mode is ahead of the running one
    by, beyond what makes a gain large (nothing, where the change is quick). `led`: whether any is.
    """

    worths: tuple[float, ...]
    best: float
    own: float
    regrets: tuple[float, ...]
    leads: tuple[float, ...]
    led: bool


class Book:
    """Worths and prices for one running mode; `modes` includes it.

    `prices`: of going from it to each mode, None where there is no way. `ways`: seconds, weighed, from each mode to each other, inf
    where there is no way. `spans`: the different ones, rising; `span_at` their places. `flat`: all ways take the same.
    """

    def __init__(
        self, rates: Rates, objective: Objective, modes: tuple[Mode, ...], costs: Costs, running: Mode, limits: Limits
    ) -> None:
        self.modes = modes
        self.running = modes.index(running)
        self.prices: tuple[Price | None, ...] = tuple(
            None if each == running else costs.price(running, each) for each in modes
        )
        self.ways = tuple(tuple(_seconds(costs, old, new) for new in modes) for old in modes)
        others = [way for place, row in enumerate(self.ways) for way in (*row[:place], *row[place + 1 :])]
        self.spans = sorted({way for way in others if 0 < way < math.inf})
        self.span_at = tuple(
            tuple(self.spans.index(way) if way in self.spans else None for way in row) for row in self.ways
        )
        self.flat = len(self.spans) == 1 and set(others) == set(self.spans)
        self.quick = tuple(price is not None and price.quick for price in self.prices)
        self._tolerance = 0.0 if any(self.quick) else limits.tolerance_ratio
        self._large = tuple(0.0 if quick else limits.large_ratio for quick in self.quick)
        self._rates = rates
        self.objective = objective
        self._capacities = tuple(capacity(rates, objective, each) for each in modes)
        self._rows: dict[float, Row | None] = {}

    def row(self, concurrency: float) -> Row | None:
        """Return the worths at that concurrency; None where the running mode's own is not known."""
        try:
            return self._rows[concurrency]
        except KeyError:
            if len(self._rows) >= MOST_ROWS:
                self._rows.clear()
            made = self._rows[concurrency] = self._row(concurrency)
            return made

    def _row(self, concurrency: float) -> Row | None:
        if concurrency <= 0:
            nothing = (0.0,) * len(self.modes)
            return Row(worths=nothing, best=0.0, own=0.0, regrets=nothing, leads=nothing, led=False)
        own = self._rates.tokens_s(self.modes[self.running], concurrency)
        if own is None:
            return None
        worths = tuple(
            self._worth(place, concurrency, own if place == self.running else self._rates.tokens_s(each, concurrency))
            for place, each in enumerate(self.modes)
        )
        best, mine = max(worths), worths[self.running]
        near = best * (1 - self._tolerance)
        leads = tuple(worth - mine - large * best for worth, large in zip(worths, self._large, strict=True))
        return Row(
            worths=worths,
            best=best,
            own=mine,
            regrets=tuple(max(near - worth, 0.0) for worth in worths),
            leads=leads,
            led=max(leads) > 0,
        )

    def _worth(self, place: int, concurrency: float, found: Estimate | None) -> float:
        """Return the worth; of a mode that nothing is known of there, nothing speaks for it: 0."""
        if found is None:
            return 0.0
        tokens_s = found.high if place == self.running else found.low
        return self.objective.worth(tokens_s, concurrency, capacity=self._capacities[place])


def _seconds(costs: Costs, old: Mode, new: Mode) -> float:
    if old == new:
        return 0.0
    price = costs.price(old, new)
    return math.inf if price is None else price.seconds * price.weight


def capacity(rates: Rates, objective: Objective, mode: Mode) -> float:
    """Return the most tokens a second that the mode is known to reach; worked out only where a floor asks for it."""
    if objective.metric is not Metric.LATENCY or objective.floor is None:
        return 0.0
    known = (rates.tokens_s(mode, probe) for probe in PROBES)
    return max((one.value for one in known if one is not None), default=0.0)
