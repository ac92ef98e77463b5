"""A mode: one algo with the knobs that it runs with, as `none`, `dflash` or `ddtree:tree_budget=16,topk_cap=4` spell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specctl.algos import ALGOS


@dataclass(frozen=True, slots=True, order=True)
class Mode:
    """An algo and its knobs, sorted by name; two modes are equal when they decode alike."""

    algo: str
    knobs: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.knobs != tuple(sorted(self.knobs)):
            raise ValueError("knobs of a mode are sorted by name")

    def __str__(self) -> str:
        knobs = ",".join(f"{name}={value}" for name, value in self.knobs)
        return f"{self.algo}:{knobs}" if knobs else self.algo

    def packed_tokens(self, concurrency: float) -> float | None:
        """Return the tokens that one verify step checks at that many requests: c × checked; None where the knobs do not say.

        The portable axis of verify cost (calibration.md §8.5: T(c) bends at a number of packed tokens, not of requests).
        """
        checked = ALGOS[self.algo].checked(dict(self.knobs))
        return None if checked is None else concurrency * checked


def mode(algo: str, knobs: Mapping[str, int] | None = None) -> Mode:
    """Make a mode; raises ValueError where the algo is unknown or a knob is not one of it or out of its bounds."""
    if algo not in ALGOS:
        raise ValueError(f"no algo {algo!r} (there are {', '.join(ALGOS)})")
    chosen = dict(knobs or {})
    faults = ALGOS[algo].faults(chosen)
    if faults:
        raise ValueError(faults[0])
    return Mode(algo, tuple(sorted(chosen.items())))


def parse(text: str) -> Mode:
    """Read what `str` of a mode writes; raises ValueError with what is wrong."""
    algo, _, rest = text.partition(":")
    knobs: dict[str, int] = {}
    for part in rest.split(",") if rest else ():
        name, _, value = part.partition("=")
        if not value.isascii() or not value.isdigit():
            raise ValueError(f"{part!r} is not knob=number")
        if name in knobs:
            raise ValueError(f"{name} is given twice")
        knobs[name] = int(value)
    return mode(algo, knobs)
