"""Null experiments out of the recorded noise of the lab engine: resampled by blocks, so that what hangs together stays together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median

from specctl.measure import ab_design, ab_fit
from specctl.measure.ab_verdict import SIGNIFICANT
from specctl.measure.chance import seeded

FOLDER = Path(__file__).parents[2] / "data" / "lab-noise"
# Starts that were recorded one after the other and stay so, and the runs of a segment with their windows.
BLOCK = 4
RUNS, WINDOWS = 3, 3


@dataclass(frozen=True, slots=True)
class Series:
    """One recorded series: tokens a second by window, a row a start of the engine, in the order of time."""

    name: str
    loads: tuple[tuple[float, ...], ...]

    def segments(self, count: int, draw: Random) -> list[float]:
        """Return the throughputs of so many segments, each a start of its own.

        Blocks of starts that followed each other are drawn and put in a row (the moving block bootstrap, H. R. Künsch, Annals of
        Statistics 17, 1989), so that drift and the wander from start to start stay; of each start a stretch of windows is taken
        whole, so that what windows have in common stays too. A segment is the median of its runs, as `specctl ab` takes it.
        """
        starts: list[tuple[float, ...]] = []
        while len(starts) < count:
            first = draw.randrange(len(self.loads) - BLOCK + 1)
            starts += self.loads[first : first + BLOCK]
        return [self._segment(start, draw) for start in starts[:count]]

    def _segment(self, start: Sequence[float], draw: Random) -> float:
        first = draw.randrange(len(start) - RUNS * WINDOWS + 1)
        taken = start[first : first + RUNS * WINDOWS]
        return median(fmean(taken[run * WINDOWS : (run + 1) * WINDOWS]) for run in range(RUNS))


def recorded() -> tuple[Series, ...]:
    """Return every recorded series."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        rows = json.loads(path.read_text())["loads"]
        loads = tuple(tuple(row["tokens_s"]) for row in rows)
        found.append(Series(path.stem, tuple(row for row in loads if len(row) >= RUNS * WINDOWS)))
    return tuple(found)


def significant(series: Series, *, cycles: int, effect: float, count: int, shrink: float = 1.0, seed: int = 0) -> float:
    """Return which part of so many experiments calls a difference significant, with B better by a part."""
    hits = 0
    for order, seen in experiments(series, cycles, count, shrink, seed):
        fit = ab_fit.fit(order, [value * (1 + effect * arm) for value, arm in zip(seen, order, strict=True)])
        assert fit is not None
        hits += ab_fit.difference(fit, 0, 1).p < SIGNIFICANT
    return hits / count


def experiments(
    series: Series, cycles: int, count: int, shrink: float, seed: int
) -> Iterator[tuple[tuple[int, ...], list[float]]]:
    """Yield order and throughputs of experiments in which nothing differs; `shrink` draws the noise nearer to its middle."""
    draw = seeded(seed)
    middle = fmean(math.log(max(fmean(load), 1e-9)) for load in series.loads)
    for number in range(count):
        order = ab_design.order(2, cycles, seed=number)
        seen = series.segments(len(order), draw)
        yield order, [math.exp(middle + shrink * (math.log(max(value, 1e-9)) - middle)) for value in seen]


def spread(series: Series, cycles: int, count: int = 200) -> float:
    """Return the spread of a segment, as a report tells it, on the root of the mean square over many experiments."""
    fits = [ab_fit.fit(order, seen) for order, seen in experiments(series, cycles, count, 1.0, 7)]
    return math.sqrt(fmean(fit.spread**2 for fit in fits if fit is not None))
