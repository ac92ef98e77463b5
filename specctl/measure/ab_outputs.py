"""Greedy answers of the arms held against each other, and each arm against itself over several starts; pure.

Greedy decoding with speculation is exact by construction, and on an engine that computes alike every time the answers are the
same token for token. On GPUs the order of sums depends on a batch's shape, so that near ties part: there the first divergence and
the gap between the two best tokens at it are held against how often an arm parts from itself (docs/ab.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from specctl.measure.ab_types import Output, Segment
from specctl.rollout.smoke import first_divergence


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where two answers to one prompt part: 0-based token, and how near the two best tokens were there (nats; None: not told)."""

    prompt: str
    at: int
    gap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two arms' answers, pair by pair of segments; `base` equal to `other` is an arm against itself."""

    base: int
    other: int
    pairs: int
    partings: tuple[Parting, ...] = ()

    @property
    def first(self) -> Parting | None:
        """Return the earliest divergence."""
        return min(self.partings, key=lambda parting: parting.at, default=None)

    @property
    def gap(self) -> float | None:
        """Return the median gap at the divergences; None where no gap is known."""
        known = [parting.gap for parting in self.partings if parting.gap is not None]
        return median(known) if known else None

    @property
    def part(self) -> float:
        """Return which part of the pairs of answers parts."""
        return len(self.partings) / self.pairs if self.pairs else 0.0


def agreement(segments: Sequence[Segment], base: int, other: int) -> Agreement:
    """Hold every segment of one arm against every one of another (of the same arm: each pair once)."""
    partings: list[Parting] = []
    count = 0
    for one, two in _pairs(segments, base, other):
        answers = {output.prompt: output for output in two.outputs}
        for output in one.outputs:
            if output.prompt in answers:
                count += 1
                partings += _parting(output, answers[output.prompt])
    return Agreement(base=base, other=other, pairs=count, partings=tuple(partings))


def _pairs(segments: Sequence[Segment], base: int, other: int) -> Iterator[tuple[Segment, Segment]]:
    ones = [segment for segment in segments if segment.arm == base]
    if base == other:
        return itertools.combinations(ones, 2)
    return itertools.product(ones, [segment for segment in segments if segment.arm == other])


def _parting(one: Output, other: Output) -> list[Parting]:
    where = first_divergence(one.tokens, other.tokens)
    if where is None:
        return []
    gaps = [output.gaps[where.at] for output in (one, other) if where.at < len(output.gaps)]
    return [Parting(prompt=one.prompt, at=where.at, gap=min(gaps) if gaps else None)]


def said(between: Agreement, alone: Agreement, *, exact: bool, letters: str) -> str:
    """Say in a sentence what the answers show; `exact`: the engine computes alike every time."""
    a, b = letters[between.base], letters[between.other]
    if not between.pairs:
        return "no greedy answers to compare"
    if not between.partings:
        return f"greedy answers of {a} and {b} are equal, token for token ({between.pairs} pairs)"
    first = between.first
    assert first is not None, "something parted"
    text = f"{len(between.partings)} of {between.pairs} pairs of greedy answers of {a} and {b} part"
    text += f", the first at token {first.at + 1}"
    if between.gap is not None:
        text += f", median gap {between.gap:.3f} nat"
    if exact and not alone.partings:
        return f"{text}: on this engine they must not, so one of the two is not lossless"
    if not alone.pairs:
        return f"{text}; {a} was not held against itself"
    return f"{text}; {a} parts from itself over starts in {len(alone.partings)} of {alone.pairs}"
