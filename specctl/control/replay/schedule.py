"""A series of concurrency replayed under a schedule of switches: what each mode served, at which concurrency, and what was lost.

The load is given from outside and does not react: what a switch leaves unserved is gone. Switches begin at steps.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.control.replay.load import Series
from specctl.control.replay.service import Service

# Fewer steps than this are added up one by one: counting them by level first would take longer.
FEW_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A switch that begins with a step: nothing is served from there on for its price, then in `mode`."""

    step: int
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The mode to begin with and every switch, in order; no switch begins before the one before it is over."""

    start: Mode
    moves: Sequence[Move] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds spent in each mode at each level of concurrency, and away while switching, by level too."""

    served: Mapping[Mode, Mapping[float, float]]
    away: Mapping[float, float]
    switches: int

    @property
    def away_s(self) -> float:
        """Seconds in which a switch served nothing."""
        return sum(self.away.values(), 0.0)


def stretches(series: Series, schedule: Schedule, away_s: float) -> Iterator[tuple[float, float, Mode | None]]:
    """Yield what the server does one after the other, as (first second, last second, mode); None while it switches."""
    mode, since = schedule.start, 0.0
    for move in schedule.moves:
        begin = move.step * series.step_s
        if begin > since:
            yield since, begin, mode
        back = min(begin + away_s, series.span_s)
        if back > begin:
            yield begin, back, None
        mode, since = move.mode, back
    if since < series.span_s:
        yield since, series.span_s, mode


def times(series: Series, schedule: Schedule, away_s: float) -> Times:
    """Add up a schedule's time by mode and level."""
    served: dict[Mode, dict[float, float]] = {}
    away: dict[float, float] = {}
    for begin, end, mode in stretches(series, schedule, away_s):
        spent = away if mode is None else served.setdefault(mode, {})
        for level, seconds in _levels(series, begin, end):
            spent[level] = spent.get(level, 0.0) + seconds
    return Times(served=served, away=away, switches=len(schedule.moves))


def _levels(series: Series, begin: float, end: float) -> Iterator[tuple[float, float]]:
    """Yield (level, seconds) between two moments: whole steps counted together, a begun step at either end in part."""
    levels, step_s = series.levels, series.step_s
    first, last = int(begin / step_s), int(end / step_s)
    if first == last:
        yield levels[first], end - begin
        return
    if begin > first * step_s:
        yield levels[first], (first + 1) * step_s - begin
        first += 1
    if last - first < FEW_STEPS:
        yield from zip(levels[first:last], itertools.repeat(step_s))
    else:
        yield from ((level, count * step_s) for level, count in Counter(levels[first:last]).items())
    if end > last * step_s and last < len(levels):
        yield levels[last], end - last * step_s


def tokens(service: Service, spent: Times) -> float:
    """Return the tokens that were served in all."""
    return sum(
        service.rate(mode, level) * seconds
        for mode, levels in spent.served.items()
        for level, seconds in levels.items()
    )
