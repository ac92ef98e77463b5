"""Bins of concurrency: exact up to four, then two an octave, so that a distribution over any number of requests stays small."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

TOPS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""The highest concurrency of each bin; what is above the last has a bin of its own."""
BINS = len(TOPS) + 1
IDLE = 0
_EMPTY = (0.0,) * BINS


def bin_of(concurrency: float) -> int:
    """Return the place of the bin that holds that many requests; means fall where the next whole number would.

    A mean of seconds misses a whole number in its last digits: three decimals count.
    """
    return bisect.bisect_left(TOPS, round(concurrency, 3))


def middle(place: int) -> float:
    """Return the mean of the whole numbers in a bin; of the open one, half as much again as its beginning."""
    if place >= len(TOPS):
        return TOPS[-1] * 1.5
    low = TOPS[place - 1] + 1 if place else 0
    return (low + TOPS[place]) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Seconds spent at each concurrency (running + waiting), one number a bin, and the seconds of which nothing is known.

    Bin 0 is a known concurrency of zero. `request_s`: Σ concurrency × seconds, so that the mean is exact whatever the bins.
    """

    seconds: tuple[float, ...] = _EMPTY
    request_s: float = 0.0
    unknown_s: float = 0.0

    def __post_init__(self) -> None:
        if len(self.seconds) != BINS:
            raise ValueError(f"a distribution has {BINS} bins, not {len(self.seconds)}")

    @property
    def observed_s(self) -> float:
        """Return the seconds of known concurrency."""
        return sum(self.seconds)

    @property
    def mean(self) -> float | None:
        """Return the time-weighted mean; None where nothing was observed."""
        observed = self.observed_s
        return self.request_s / observed if observed > 0 else None

    @property
    def idle_ratio(self) -> float | None:
        """Return the share of observed time without a request; None where nothing was observed."""
        observed = self.observed_s
        return self.seconds[IDLE] / observed if observed > 0 else None

    def points(self) -> tuple[tuple[float, float], ...]:
        """Return (concurrency, share of observed time) of each bin that has any, in rising order; shares sum to 1."""
        observed = self.observed_s
        if observed <= 0:
            return ()
        return tuple((middle(place), part / observed) for place, part in enumerate(self.seconds) if part > 0)

    def quantile(self, share: float) -> float | None:
        """Return the concurrency that is not exceeded for that share of observed time (0 to 1), to a bin's exactness."""
        passed = 0.0
        found = None
        for concurrency, part in self.points():
            passed, found = passed + part, concurrency
            if passed >= share:
                break
        return found

    def add(self, concurrency: float | None, span_s: float) -> Distribution:
        """Return it with `span_s` more seconds at that concurrency; None: of which nothing is known."""
        if concurrency is None:
            return Distribution(seconds=self.seconds, request_s=self.request_s, unknown_s=self.unknown_s + span_s)
        place = bin_of(concurrency)
        seconds = (*self.seconds[:place], self.seconds[place] + span_s, *self.seconds[place + 1 :])
        return Distribution(seconds=seconds, request_s=self.request_s + concurrency * span_s, unknown_s=self.unknown_s)

    def scaled(self, factor: float) -> Distribution:
        """Return it with every weight times a factor."""
        return Distribution(
            seconds=tuple(part * factor for part in self.seconds),
            request_s=self.request_s * factor,
            unknown_s=self.unknown_s * factor,
        )


def merged(parts: tuple[Distribution, ...]) -> Distribution:
    """Return the sum of distributions."""
    if not parts:
        return Distribution()
    return Distribution(
        seconds=tuple(map(sum, zip(*(part.seconds for part in parts), strict=True))),
        request_s=sum(part.request_s for part in parts),
        unknown_s=sum(part.unknown_s for part in parts),
    )
