"""Probes as engines with one break would make them: how many picks of each place and history are wrong, drawn by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from specctl.doctor.lossless_types import Answer, Break, History, Pick, Place, Probe

FRESH, STRAIGHT, MOVED = History.FRESH, History.STRAIGHT, History.MOVED
EVERY = {(place, history) for place in (Place.ROOT, Place.CHAIN, Place.BRANCH) for history in (FRESH, STRAIGHT, MOVED)}
RIGHT, WRONG = 1, 2

STRIKES: Mapping[Break | None, set[tuple[Place, History]]] = {
    None: set(),
    Break.MASK: {cell for cell in EVERY if cell[0] is Place.BRANCH or cell[1] is MOVED},
    Break.POSITION: EVERY - {(Place.ROOT, FRESH)},
    Break.KV: {cell for cell in EVERY if cell[1] is MOVED},
    Break.TARGET: EVERY,
}
"""Where each break shows, as it was seen on the lab engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many picks a cell has, and how often a break turns one where it shows."""

    each: int = 60
    rate: float = 0.25


def probe(
    broken: Break | None,
    sizes: Sizes | None = None,
    *,
    seed: int = 0,
    noise: float = 0.0,
    struck: float = 0.0,
    positions_right: bool | None = True,
    gap: float | None = None,
) -> Probe:
    """Return a probe of an engine with this break; `struck`: how often picks differ though all is well."""
    chance, found = Random(seed), sizes or Sizes()
    picks: list[Pick] = []
    answers: dict[tuple[int, ...], Answer] = {}
    for place, history in sorted(EVERY, key=str):
        for _ in range(found.each):
            context = (len(picks),)
            rate = found.rate if (place, history) in STRIKES[broken] else struck
            said = WRONG if chance.random() < rate else RIGHT
            picks.append(
                Pick(rid="r", step=len(picks), place=place, history=history, said=said, context=context, node=0)
            )
            answers[context] = Answer(token=RIGHT, gap=gap)
    return Probe(
        picks=tuple(picks), answers=answers, traced=True, positions_right=positions_right, noise=noise, max_drafts=7
    )
