"""One calibration under way, as a value: what was asked, of what, what was measured so far; kept, gone on with, and concluded.

A *study* is all of it. Its conclusion is worked out from the segments each time, never kept beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from specctl.control.calibration_facts import Facts
from specctl.control.calibration_found import Said
from specctl.control.mode import Mode
from specctl.control.objective import Metric
from specctl.measure.sweep import SURVEY_ROUNDS, Question, Segment, counted, grid
from specctl.measure.sweep_found import Found, found

RATIOS = (2, 4, 8, 1024)
"""The steps of the first grid, the finest first; the last has the ends alone."""
SURVEY_SHARE = 0.6
"""The survey takes so much of the time at most: the rest is for where the answer is open."""
LEAST_WINDOW_S, MOST_WINDOW_S = 2.0, 20.0
"""A window shorter than two seconds holds too few steps; one longer than twenty is better spent on another round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What the command line asks for. `window_s`: the steady seconds that a segment measures."""

    low: int
    high: int
    limit_s: float
    tokens: int
    prompts: str
    window_s: float
    metric: Metric = Metric.LATENCY
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One calibration. `way`: live or restart; `before`: release and algo that were deployed, `was`: the mode that ran."""

    id: str
    began: str
    specctl: str
    host: str
    server: str
    ask: Ask
    question: Question
    facts: Facts
    way: str
    before: tuple[str, str]
    was: Mode
    max_running: int | None = None
    releases: Mapping[str, str] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()

    @property
    def names(self) -> Mapping[Mode, str]:
        """Return what the modes are called in words and plots: without the knobs that all modes of an algo share."""
        return {mode: _name(mode, self.question.modes) for mode in self.question.modes}

    @property
    def spent_s(self) -> float:
        """Return the seconds that its segments took."""
        return sum(each.took_s for each in self.segments)

    @property
    def spoiled(self) -> tuple[Segment, ...]:
        """Return the segments that do not count."""
        return tuple(each for each in self.segments if each.spoiled is not None)

    @property
    def conclusion(self) -> Found:
        """Return what it says so far."""
        return found(self.question, self.segments)

    @property
    def said(self) -> Said:
        """Return what it says so far, as the file keeps it."""
        told = self.conclusion
        return Said(stretches=told.stretches, crossovers=told.crossovers, trees=told.trees, drafts=told.drafts)

    def accept_length(self, mode: Mode, concurrency: int) -> float | None:
        """Return the mean accept length of a point; None where its segments do not tell."""
        told = [
            each.accept_length
            for each in counted(self.segments)
            if (each.place.mode, each.place.concurrency) == (mode, concurrency) and each.accept_length is not None
        ]
        return fmean(told) if told else None


def _name(mode: Mode, modes: Sequence[Mode]) -> str:
    own = [dict(each.knobs) for each in modes if each.algo == mode.algo]
    telling = {name: value for name, value in mode.knobs if any(knobs.get(name) != value for knobs in own)}
    return str(Mode(mode.algo, tuple(sorted(telling.items()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a segment is thought to cost beside its window, in seconds: `around` for warm-up and end, `switch` for another mode."""

    around_s: float
    switch_s: float
    by_mode: bool


class TooShortError(ValueError):
    """The time does not suffice for the least survey; `needed_s` would."""

    def __init__(self, needed_s: float) -> None:
        super().__init__(f"the least survey takes {needed_s:.0f} s")
        self.needed_s = needed_s


def planned(modes: Sequence[Mode], ask: Ask, pace: Pace) -> tuple[Question, float]:
    """Return the question with the finest grid whose survey fits the time, and the window of a segment.

    Raises TooShortError where not even the ends of the range can be measured twice.
    """
    room = ask.limit_s * SURVEY_SHARE - _changes_s(modes, pace)
    levels: tuple[int, ...] = ()
    for ratio in RATIOS:
        levels = grid(ask.low, ask.high, ratio)
        window_s = room / (SURVEY_ROUNDS * len(levels) * len(modes)) - _each_s(pace)
        if window_s >= LEAST_WINDOW_S:
            window_s = ask.window_s or min(window_s, MOST_WINDOW_S)
            return question(modes, levels, window_s, pace), window_s
    least_s = SURVEY_ROUNDS * len(levels) * len(modes) * (_each_s(pace) + LEAST_WINDOW_S) + _changes_s(modes, pace)
    raise TooShortError(least_s / SURVEY_SHARE)


def question(modes: Sequence[Mode], levels: tuple[int, ...], window_s: float, pace: Pace) -> Question:
    """Return the question of a sweep with such a window."""
    return Question(
        modes=tuple(modes),
        grid=levels,
        segment_s=window_s + pace.around_s,
        switch_s=pace.switch_s,
        by_mode=pace.by_mode,
    )


def _each_s(pace: Pace) -> float:
    return pace.around_s + (0.0 if pace.by_mode else pace.switch_s)


def _changes_s(modes: Sequence[Mode], pace: Pace) -> float:
    """Return what changing modes takes in a survey that goes through the concurrencies mode by mode."""
    return SURVEY_ROUNDS * len(modes) * pace.switch_s if pace.by_mode else 0.0
