"""What a calibration says beside its figures: where the best mode changes, and whether trees, or drafts, pay; kept in its file.

Nothing is said of a concurrency outside of those that were measured.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from specctl.control.mode import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Where the best mode changes: between `low` and `high`, most likely `at` (None where nobody can tell).

    `before`, `after`: the modes of which one is best at either end, the likeliest first; none is in both.
    """

    before: tuple[Mode, ...]
    after: tuple[Mode, ...]
    low: float
    high: float
    at: float | None = None


class Answer(enum.Enum):
    """Whether something pays: somewhere, nowhere that was measured, or nobody knows yet."""

    PAYS = "pays"
    NEVER = "never pays here"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer for one kind of modes; `at`: the concurrencies where one of them is best for certain, `open`: undecided ones."""

    answer: Answer
    at: tuple[float, ...] = ()
    open: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring concurrencies at which the same modes are best: one for certain, several level, or undecided among them."""

    low: float
    high: float
    modes: tuple[Mode, ...]
    decided: bool
