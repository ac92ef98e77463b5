"""Counters and histograms of the HTTP side: those that grow only when a request finishes, and those of HTTP itself.

Touched by the event loop's thread alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from specctl.lab.serve.histogram import (
    FIRST_TOKEN_EDGES,
    LATENCY_EDGES,
    LOADS_EDGES,
    TOKEN_COUNT_EDGES,
    TOKEN_GAP_EDGES,
    Histogram,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a request that ended adds to the counters; durations are None where the request never got so far."""

    streaming: bool
    prompt_tokens: int
    completion_tokens: int
    verify_calls: int
    aborted: bool
    latency_s: float
    first_token_s: float | None
    per_token_s: float | None


class Ledger:
    """Sums over finished requests and over HTTP answers."""

    def __init__(self) -> None:
        self.prompt_tokens: Counter[bool] = Counter()
        self.generation_tokens: Counter[bool] = Counter()
        self.requests: Counter[bool] = Counter()
        self.verify_calls = 0
        self.aborted = 0
        self.first_token: defaultdict[bool, Histogram] = defaultdict(lambda: Histogram(FIRST_TOKEN_EDGES))
        self.latency: defaultdict[bool, Histogram] = defaultdict(lambda: Histogram(LATENCY_EDGES))
        self.per_token: defaultdict[bool, Histogram] = defaultdict(lambda: Histogram(TOKEN_GAP_EDGES))
        self.token_gap = Histogram(TOKEN_GAP_EDGES)
        self.prompt_sizes = Histogram(TOKEN_COUNT_EDGES)
        self.generation_sizes = Histogram(TOKEN_COUNT_EDGES)
        self.loads_time = Histogram(LOADS_EDGES)
        self.http_active: Counter[tuple[str, str]] = Counter()
        self.http_requests: Counter[tuple[str, str]] = Counter()
        self.http_responses: Counter[tuple[str, str, int]] = Counter()

    def finish(self, request: Finished) -> None:
        """Count a request that has ended."""
        kind = request.streaming
        self.requests[kind] += 1
        self.prompt_tokens[kind] += request.prompt_tokens
        self.generation_tokens[kind] += request.completion_tokens
        self.verify_calls += request.verify_calls
        self.aborted += request.aborted
        self.latency[kind].observe(request.latency_s)
        self.prompt_sizes.observe(request.prompt_tokens)
        self.generation_sizes.observe(request.completion_tokens)
        if request.first_token_s is not None:
            self.first_token[kind].observe(request.first_token_s)
        if request.per_token_s is not None:
            self.per_token[kind].observe(request.per_token_s)

    def gap(self, seconds: float, tokens: int) -> None:
        """Count the wait for a delta, shared out over the tokens that came with it."""
        self.token_gap.observe(seconds / tokens, tokens)
