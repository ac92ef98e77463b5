"""What is asked of the target about an engine's tokens, what it answered, and what is judged of it; frozen values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Place(enum.Enum):
    """Where in a verify step a token of the target was picked; DRAFTED: on the accepted path, one does not know where."""

    ROOT = "roots"
    CHAIN = "nodes with nothing but ancestors before them"
    BRANCH = "nodes with other nodes before them"
    DRAFTED = "accepted drafts"


class History(enum.Enum):
    """What the request's earlier steps left in its cache.

    FRESH: no draft was ever accepted. STRAIGHT: accepted paths lay one node after another, so that nothing had to be moved.
    MOVED: some path did not. AFTER: drafts were accepted, one does not know how they lay.
    """

    FRESH = "before any accepted draft"
    STRAIGHT = "after straight paths"
    MOVED = "after a path that had to be moved"
    AFTER = "after accepted drafts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """A token that the target said in a step, after this context (prompt and all); `node` is None without a trace."""

    rid: str
    step: int
    place: Place
    history: History
    said: int
    context: tuple[int, ...]
    node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a plain prefill of a context gives: the target's token and, where told, its lead over the second best in nats."""

    token: int
    gap: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The same prefills asked twice: how many answers changed, the widest lead that did, the largest change of a lead (nats)."""

    asked: int = 0
    changed: int = 0
    widest_gap: float | None = None
    drift: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPair:
    """One step's drafts beside those of a fresh request with the same text, and how many of each were accepted.

    `same` is None where the engine told no drafts.
    """

    history: History
    accepted: int
    fresh_accepted: int
    same: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A request of the probe by its answer: tokens got and asked for, verify calls, drafts that it says were right, its end."""

    rid: str
    asked: int
    tokens: int
    verify_calls: int | None = None
    correct_drafts: int | None = None
    finish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """All that a probe learnt. `answers` go by context.

    `traced`: the engine wrote a verify trace of it. `positions_right`: by that trace; None where it does not tell positions.
    `max_drafts`: the most that a step can accept. `noise`: the share of picks that differ though all is well, on an engine whose
    passes are not exact. `silent`: why there is no trace, or nothing to compare.
    """

    picks: tuple[Pick, ...] = ()
    answers: Mapping[tuple[int, ...], Answer] = field(default_factory=dict)
    baseline: Baseline = Baseline()
    drafts: tuple[DraftPair, ...] = ()
    answered: tuple[Answered, ...] = ()
    traced: bool = False
    positions_right: bool | None = None
    max_drafts: int | None = None
    noise: float = 0.0
    silent: str | None = None


class Break(enum.Enum):
    """What is broken; the value is what a person reads."""

    MASK = "the tree's mask is wrong: nodes see nodes that are no ancestors of theirs"
    POSITION = "drafts are verified at wrong positions"
    KV = "keys and values of the accepted path are not moved together"
    TARGET = "the target's own tokens differ, even where nothing was drafted before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How many picks of one place and history were held against the target, and how many were others, near-ties left out."""

    place: Place
    history: History
    checked: int
    wrong: int
    ties: int = 0

    def __str__(self) -> str:
        """Return the figures in words."""
        return f"{self.wrong} of {self.checked} wrong: {self.place.value}, {self.history.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lossless:
    """The judgement of a probe's tokens.

    `named`: the break, None where nothing is broken or the evidence does not name it; then `candidates` are what it leaves
    open. `first`: the first pick that differs, with what the target says instead. `why`: the step of reasoning that decided, or
    what was lacking.
    """

    checked: int
    wrong: int
    ties: int
    cells: tuple[Cell, ...]
    named: Break | None = None
    candidates: tuple[Break, ...] = ()
    first: Pick | None = None
    wanted: int | None = None
    why: str = ""
