"""Requests for a trace that has rates alone: arrivals by chance with a seed, lengths from a stated distribution.

The numbers come from SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), written out here: the same seed gives the same requests
on every Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from specctl.control.replay.load import Requests

_MASK = (1 << 64) - 1
# Prompts of one workload spread like a lognormal with about this deviation of the logarithm; an assumption, not a measurement.
PROMPT_SIGMA = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean tokens of a prompt and of an answer; prompts are lognormal, answers exponential, none shorter than one token.

    The means of the default are an assumption: a trace of rates does not say them.
    """

    prompt: float = 1000.0
    answer: float = 500.0

    def __post_init__(self) -> None:
        if not (1 <= self.prompt <= 1e6 and 1 <= self.answer <= 1e6):
            raise ValueError("a mean length is 1 to 1000000 tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Requests a second by window: when each begins, in seconds from the first, and its rate; the last is `last_s` long."""

    starts_s: Sequence[float]
    rates: Sequence[float]
    last_s: float

    @property
    def span_s(self) -> float:
        """How long the windows last together, in seconds."""
        return self.starts_s[-1] + self.last_s

    @property
    def expected(self) -> float:
        """How many requests arrive, by the mean."""
        return sum((end - begin) * rate for begin, end, rate in self.bounds())

    def bounds(self) -> Iterator[tuple[float, float, float]]:
        """Yield each window's beginning, end and rate."""
        yield from zip(self.starts_s, (*self.starts_s[1:], self.span_s), self.rates, strict=True)

    def scaled(self, ratio: float) -> Windows:
        """Return the same windows with `ratio` times the rates."""
        return replace(self, rates=tuple(rate * ratio for rate in self.rates))


def uniform(seed: int) -> Iterator[float]:
    """Yield numbers between 0 and 1, both left out, for ever."""
    state = seed & _MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
        yield ((mixed ^ mixed >> 31) + 0.5) / 2**64


def requests(windows: Windows, lengths: Lengths, seed: int) -> Requests:
    """Return requests that arrive independently of each other at the windows' rates; raises ValueError where none arrives."""
    at_s = tuple(_arrivals(windows, uniform(seed)))
    chance = uniform(seed + 1)
    normal = NormalDist()
    centre = math.log(lengths.prompt) - PROMPT_SIGMA**2 / 2
    inputs = [max(1, round(math.exp(centre + PROMPT_SIGMA * normal.inv_cdf(next(chance))))) for _ in at_s]
    outputs = [max(1, round(-lengths.answer * math.log(next(chance)))) for _ in at_s]
    return Requests(at_s=at_s, inputs=inputs, outputs=outputs, span_s=windows.span_s)


def _arrivals(windows: Windows, chance: Iterator[float]) -> Iterator[float]:
    """Yield moments of a Poisson process: exponential gaps, stretched by each window's rate."""
    due = -math.log(next(chance))
    for begin, end, rate in windows.bounds():
        now = begin
        while rate > 0 and now + due / rate < end:
            now += due / rate
            yield now
            due = -math.log(next(chance))
        due -= (end - now) * rate
