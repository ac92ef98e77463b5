"""The best schedule of switches for a concurrency that is known to its end, by dynamic programming over its steps.

Exact for an exogenous series: no schedule whose switches begin at steps is worth more. Not a policy: nobody knows the future.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.control.replay.load import Series
from specctl.control.replay.schedule import Move, Schedule
from specctl.control.replay.worth import Worth


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trail:
    """What leads back from the end: which modes were entered with each step (one bit each), and the best before it."""

    entered: Sequence[int]
    leaders: Sequence[int]
    last: int
    delay: int


def plan(series: Series, values: Worth, start: Mode, away_s: float) -> Schedule:
    """Return the schedule from `start` whose worth over the whole series is the greatest; of equals one that switches less.

    Let D(m, j) be the most worth gathered before step j with m serving. A switch of k whole steps and a part f of one that
    begins with step j serves again in step j + k, of which it loses f:
    D(m, j+1) = w(m, j) + max(D(m, j), max over n of D(n, j-k) - f·w(m, j)). Time O(steps × modes), memory O(steps).
    """
    trail = _forward(series, values, start, away_s)
    moves: list[Move] = []
    step, place = len(series.levels) - 1, trail.last
    while step >= 0:
        if trail.entered[step] >> place & 1:
            moves.append(Move(step=step - trail.delay, mode=values.modes[place]))
            step -= trail.delay
            place = trail.leaders[step]
        step -= 1
    return Schedule(start=start, moves=tuple(reversed(moves)))


def _forward(series: Series, values: Worth, start: Mode, away_s: float) -> _Trail:
    """Fill D step by step, and remember what it was made of."""
    places = range(len(values.modes))
    delay = int(away_s / series.step_s)
    part = away_s / series.step_s - delay
    gathered = [-math.inf for _ in places]
    gathered[values.modes.index(start)] = 0.0
    tops = array("d")
    leaders = array("B")
    entered: list[int] = []
    rows = values.rows
    for step, level in enumerate(series.levels):
        row = rows[level]
        top = max(gathered)
        tops.append(top)
        leaders.append(gathered.index(top))
        mask = 0
        if step >= delay:
            base = tops[step - delay]
            for place in places:
                gain = row[place]
                if base - part * gain > gathered[place]:
                    gathered[place] = base - part * gain
                    mask |= 1 << place
                gathered[place] += gain
        else:
            gathered = [before + gain for before, gain in zip(gathered, row, strict=True)]
        entered.append(mask)
    return _Trail(entered=entered, leaders=leaders, last=gathered.index(max(gathered)), delay=delay)
