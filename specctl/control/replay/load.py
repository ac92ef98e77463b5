"""What a replay is fed: requests with their lengths, or the concurrency of a server step by step; values only."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A copy of a request comes this much after it where a trace is scaled up: near enough to keep its burst, not at once.
COPY_APART_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests in the order of their arrival, in columns: seconds since the beginning, tokens of the prompt, tokens to generate.

    Every request generates at least one token; `span_s` is how long requests arrive, no less than the last arrival.
    """

    at_s: Sequence[float]
    inputs: Sequence[int]
    outputs: Sequence[int]
    span_s: float

    def __post_init__(self) -> None:
        if not len(self.at_s) == len(self.inputs) == len(self.outputs):
            raise ValueError("the columns of requests differ in length")
        if not self.at_s:
            raise ValueError("there is no request")
        if self.at_s[0] < 0 or any(later < sooner for sooner, later in itertools.pairwise(self.at_s)):
            raise ValueError("requests are not in the order of their arrival")
        if self.span_s < self.at_s[-1]:
            raise ValueError("the span ends before the last arrival")
        if min(self.inputs) < 0 or min(self.outputs) < 1:
            raise ValueError("a request has at least no prompt and one token to generate")

    def __len__(self) -> int:
        return len(self.at_s)

    @property
    def tokens(self) -> int:
        """The tokens that all requests together generate."""
        return sum(self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Requests at a server, running and waiting, over time: one level for each step of `step_s` seconds."""

    step_s: float
    levels: Sequence[float]

    def __post_init__(self) -> None:
        if not self.step_s > 0:
            raise ValueError("a step lasts no time")
        if not self.levels:
            raise ValueError("there is no concurrency")
        if min(self.levels) < 0:
            raise ValueError("a concurrency is below zero")

    @property
    def span_s(self) -> float:
        """How long the series lasts, in seconds."""
        return self.step_s * len(self.levels)


def scaled(requests: Requests, ratio: float) -> Requests:
    """Return the same hours with `ratio` times as many requests: some left out evenly, or some sent again a moment later.

    Hours stay hours: what a switch of minutes costs is held against the same course of the day. Raises ValueError for a
    ratio that leaves no request.
    """
    if not 0 < ratio < float("inf"):
        raise ValueError("a load is scaled by a number above zero")
    rows = sorted(_copies(requests, ratio))
    if not rows:
        raise ValueError(f"scaled by {ratio:g}, no request is left")
    at_s, inputs, outputs = zip(*rows, strict=True)
    return Requests(at_s=at_s, inputs=inputs, outputs=outputs, span_s=max(requests.span_s, at_s[-1]))


def _copies(requests: Requests, ratio: float) -> Iterator[tuple[float, int, int]]:
    """Yield each request as often as keeps the running count nearest to `ratio` times that of the trace."""
    sent = 0
    for number, row in enumerate(zip(requests.at_s, requests.inputs, requests.outputs, strict=True), start=1):
        due = int(number * ratio)
        for copy in range(due - sent):
            yield row[0] + copy * COPY_APART_S, row[1], row[2]
        sent = due


def concurrency(at_s: Sequence[float], finished_s: Sequence[float], *, step_s: float, span_s: float) -> Series:
    """Return how many requests were at the server when each step began, from arrivals and from ends, each in order of time."""
    steps = max(1, int(span_s / step_s))
    arrived = gone = 0
    levels: list[int] = []
    for step in range(steps):
        moment = step * step_s
        arrived = bisect_right(at_s, moment, arrived)
        gone = bisect_right(finished_s, moment, gone)
        levels.append(arrived - gone)
    return Series(step_s=step_s, levels=levels)
