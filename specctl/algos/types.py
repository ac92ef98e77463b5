"""What an algorithm is: a shape, knobs with bounds, and the figures that must hold of its metrics (design.md §7)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class Shape(enum.Enum):
    """What one verify step checks: nothing, a chain of drafts or a tree of drafts."""

    NONE = "none"
    CHAIN = "chain"
    TREE = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A tunable of an algo: a whole number between two bounds, both allowed."""

    name: str
    low: int
    high: int
    meaning: str

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"knob {self.name}: low {self.low} is over high {self.high}")


def _one_token(_knobs: Mapping[str, int]) -> int | None:
    return 1


def _no_drafts(_knobs: Mapping[str, int]) -> int | None:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Algo:
    """One decode algorithm, and what a step of it does with given knobs; None where the knobs do not say.

    `max_drafts` gives the most drafts that one step can accept, `checked` how many tokens of a request it verifies, the anchor or
    root included.
    """

    name: str
    shape: Shape
    summary: str
    knobs: tuple[Knob, ...] = ()
    max_drafts: Callable[[Mapping[str, int]], int | None] = field(default=_no_drafts)
    checked: Callable[[Mapping[str, int]], int | None] = field(default=_one_token)

    def knob(self, name: str) -> Knob | None:
        """Return the knob of that name, or None."""
        return next((knob for knob in self.knobs if knob.name == name), None)

    @property
    def drafts(self) -> bool:
        """Claim that it needs a draft model."""
        return self.shape is not Shape.NONE

    def faults(self, knobs: Mapping[str, int]) -> tuple[str, ...]:
        """Say what is wrong with a set of knobs, one sentence each; empty when all is well."""
        found = []
        for name, value in knobs.items():
            knob = self.knob(name)
            if knob is None:
                known = ", ".join(k.name for k in self.knobs) or "none at all"
                found.append(f"{self.name} has no knob {name} (it has {known})")
            elif not knob.low <= value <= knob.high:
                found.append(f"{name} is {value}, outside {knob.low} to {knob.high}")
        return tuple(found)
