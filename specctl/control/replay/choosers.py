"""What decides in a replay, step by step: thresholds on concurrency, a fixed schedule, or whatever else keeps to `Chooser`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from specctl.control.mode import Mode
from specctl.control.replay.load import Series
from specctl.control.replay.outage import Outage
from specctl.control.replay.queueing import Server
from specctl.control.replay.schedule import Move, Schedule
from specctl.control.replay.worth import Worth

# Hysteresis as one would set it by hand: a tenth better for a minute.
HOLD_S = 60.0
MARGIN_RATIO = 0.1
# Further settings that a replay tries in hindsight, to find the best that a threshold could have done.
TUNED_HOLDS_S: Sequence[float] = (0.0, 60.0, 600.0)
TUNED_MARGINS: Sequence[float] = (0.0, 0.1)


class Chooser(Protocol):
    """Decides once a step while no switch is under way.

    `level` is the concurrency, running and waiting, as the step begins; the steps of a switch are not shown.
    """

    def choose(self, now_s: float, level: float, mode: Mode) -> Mode | None:
        """Return the mode to switch to; None: stay in `mode`."""
        ...


@dataclass(slots=True, kw_only=True)
class Threshold:
    """Goes to the mode that is best at the concurrency at hand, once it has been better by a margin for long enough.

    With `hold_s` and `margin` of zero it is a bare threshold. Without a request it stays.
    """

    worth: Worth
    hold_s: float = 0.0
    margin: float = 0.0
    _since_s: float | None = None
    _mode: Mode | None = None
    _place: int = 0

    def choose(self, now_s: float, level: float, mode: Mode) -> Mode | None:
        """Return the best mode when it has been better long enough; the clock begins anew whenever it is not."""
        if mode is not self._mode:
            self._mode, self._place = mode, self.worth.modes.index(mode)
        row = self.worth.rows[level]
        place = self.worth.best[level]
        if place is None or row[place] <= row[self._place] * (1 + self.margin):
            self._since_s = None
            return None
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s < self.hold_s:
            return None
        self._since_s = None
        return self.worth.modes[place]


@dataclass(slots=True)
class Planned:
    """Follows a schedule that was made beforehand; a move that comes while a switch is under way follows it."""

    schedule: Schedule
    step_s: float
    _next: int = 0

    def choose(self, now_s: float, level: float, mode: Mode) -> Mode | None:  # noqa: ARG002  # the load was known before
        """Return the mode of the last move that is due, unless it is the mode that serves."""
        due: Mode | None = None
        moves = self.schedule.moves
        while self._next < len(moves) and moves[self._next].step * self.step_s <= now_s:
            due = moves[self._next].mode
            self._next += 1
        return None if due == mode else due


def tuned(worth: Worth) -> Iterator[Threshold]:
    """Yield a threshold for every setting that is tried in hindsight."""
    for hold_s in TUNED_HOLDS_S:
        for margin in TUNED_MARGINS:
            yield Threshold(worth=worth, hold_s=hold_s, margin=margin)


def drive(series: Series, chooser: Chooser, start: Mode, away_s: float) -> Schedule:
    """Let a chooser go through an exogenous series, and return what it did."""
    levels, step_s = series.levels, series.step_s
    mode, moves = start, list[Move]()
    step, steps = 0, len(levels)
    while step < steps:
        wish = chooser.choose(step * step_s, levels[step], mode)
        if wish is None or wish == mode:
            step += 1
            continue
        moves.append(Move(step=step, mode=wish))
        mode = wish
        # The step in which the new mode begins to serve is the first that can decide again; a switch takes at least its own.
        step += max(1, -int(-away_s // step_s))
    return Schedule(start=start, moves=tuple(moves))


def drive_server(server: Server, chooser: Chooser | None, *, step_s: float, span_s: float, outage: Outage) -> float:
    """Let a chooser run a server until all requests have ended, and return the tokens that were served by `span_s`.

    It decides once a step until then; what is left is served in the mode that is there. None stands for a static mode.
    """
    if chooser is not None:
        for step in range(int(span_s / step_s) + 1):
            now_s = step * step_s
            server.advance(now_s)
            if server.switching:
                continue
            wish = chooser.choose(now_s, server.running + server.waiting, server.mode)
            if wish is not None and wish != server.mode:
                server.switch(wish, outage)
    server.advance(span_s)
    served = server.served
    server.advance(math.inf)
    return served
