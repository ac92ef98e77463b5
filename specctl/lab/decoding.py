"""What the engine asks of an algo, and what one decode iteration of it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from specctl.lab.batch import Batch
from specctl.lab.cache import Ints
from specctl.lab.seam import RIGHT, Seam


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one iteration decoded for one row: the drafts that are kept, then the target's own token.

    `nodes` is what was verified, the root included; None where nothing was drafted. `accepted_drafts` is how many drafts the
    target agreed with, before any cut: all of them are kept.
    """

    tokens: tuple[int, ...]
    nodes: int | None = None
    accepted_drafts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What one verification was given and what it found, a row a request; read by a trace alone (tracing.py).

    `target` is the target's token after each candidate. `parents`, `paths` and `counts` (real nodes a row) are None for a chain.
    `walked` drafts were accepted.
    """

    tokens: Ints
    positions: Ints
    target: Ints
    walked: Ints
    parents: Ints | None = None
    paths: Ints | None = None
    counts: Ints | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One decode iteration over the batch, a block a row; the batch's caches already stand after it."""

    blocks: tuple[Block, ...]
    forward_tokens: int
    verified: Verified | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobRange:
    """The bounds of a knob and what it is when not given."""

    low: int
    high: int
    default: int


class Decoder(Protocol):
    """An algo with its knobs set; it keeps nothing between two iterations."""

    def decode(self, batch: Batch) -> Iteration:
        """Decode one block for every row and leave the batch's caches after it."""
        ...


class Algo(Protocol):
    """An algo as the engine looks it up."""

    name: str
    drafts: bool
    knobs: Mapping[str, KnobRange]

    def decoder(self, knobs: Mapping[str, int], seam: Seam = RIGHT, /) -> Decoder:
        """Return the decoder for knobs that are complete and within bounds, right unless another seam is given."""
        ...
