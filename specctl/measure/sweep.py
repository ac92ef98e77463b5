"""A sweep over concurrency × mode, as values: what it is asked, the segments that were measured, the next ones to measure.

A *segment* is one short run of load in one mode at one concurrency. A *round* at a concurrency has one segment of each mode that is
still in question there, right after each other and in turned order from round to round, so that a drift of the machine falls on
all modes alike. Everything is worked out anew from the segments, so that a sweep goes on from those of an interrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode

MOST_CONCURRENCY = 1024
SURVEY_ROUNDS = 2
"""One round tells no noise, and without it no order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One mode at one concurrency."""

    mode: Mode
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One measured segment: output tokens a second of the whole server, and the seconds that it took, its switch included.

    `round`: the number of the block that it was measured in; segments of one concurrency and round are compared with each other.
    `accept_length` with the bonus token, None where the engine does not tell. `spoiled`: why it does not count.
    """

    place: Place
    round: int
    tokens_s: float
    took_s: float
    accept_length: float | None = None
    spoiled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What to measure next, in this order: one round at one concurrency or, where each change of mode is a restart, at several."""

    number: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a sweep is to answer, and on which terms.

    `grid`: the concurrencies that are measured in any case, rising; between two of them others may be added, outside of them none.
    `level_ratio`: modes that differ by less serve alike, for whoever has to choose. `alpha`: how often, at most, the mode found
    best at one concurrency may be another one; a crossover rests on two concurrencies. `segment_s`, `switch_s`: what they are
    thought to take before any was measured; `by_mode`: changing the mode is dear, so that a block goes through the concurrencies
    mode by mode.
    """

    modes: tuple[Mode, ...]
    grid: tuple[int, ...]
    segment_s: float
    switch_s: float = 0.0
    by_mode: bool = False
    level_ratio: float = 0.03
    alpha: float = 0.025
    most_rounds: int = 40

    def __post_init__(self) -> None:
        if len(set(self.modes)) != len(self.modes) or len(self.modes) < 2:
            raise ValueError("a sweep compares two or more different modes")
        if not self.grid or list(self.grid) != sorted(set(self.grid)) or not 1 <= self.grid[0] <= self.grid[-1]:
            raise ValueError("concurrencies are whole numbers from 1 on, rising")
        if self.grid[-1] > MOST_CONCURRENCY:
            raise ValueError(f"no more than {MOST_CONCURRENCY} requests at a time")


def counted(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments that nothing spoiled."""
    return tuple(each for each in segments if each.spoiled is None)


def concurrencies(segments: Sequence[Segment]) -> tuple[int, ...]:
    """Return the concurrencies that were measured, rising."""
    return tuple(sorted({each.place.concurrency for each in counted(segments)}))


def grid(low: int, high: int, ratio: int) -> tuple[int, ...]:
    """Return both ends and what lies between them, each `ratio` times the one before."""
    found = [low]
    while found[-1] * ratio < high:
        found.append(found[-1] * ratio)
    return tuple(dict.fromkeys([*found, high]))
