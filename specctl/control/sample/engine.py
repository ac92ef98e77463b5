"""What is known of an engine at one moment: answers of its endpoints, and the sample that the profile and the policy read.

Every field may be None, which means unknown: a source did not answer, does not tell, or tells a zero that means nothing. Nothing
here reads a clock; seconds named `at_s` are of the agent's own monotonic clock.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from specctl.control.mode import Mode

STALE_AFTER_S = 5.0
"""An answer older than this is no answer any more: some looks of one a second were missed."""
FROZEN_AFTER_S = 10.0
"""Age of the newest publication that means a stopped scheduler: busy ones were under 3 s, idle ones at 0.02 s, a frozen one at 40 s
(recordings, surprise 14)."""
LIVE_WITHIN_S = 2.0
"""An answer older than this is not live enough to call an engine idle (design.md §6)."""

ROUNDING = 1e-6
"""Ranks are told in any order, and sums of their seconds differ by it in the last digits: no more than a microsecond."""


class Activity(enum.Enum):
    """What one look says an engine does; only IDLE and ACTIVE carry a concurrency that can be trusted."""

    STALE = "stale"
    """The source did not answer: nothing is known."""
    FROZEN = "frozen"
    """It answers, but its scheduler has published nothing for FROZEN_AFTER_S: hung, or paused in place."""
    UNREADY = "unready"
    """It answers, and /ready refuses: paused, draining, warming up, or given up by its own health check."""
    ACTIVE = "active"
    """Requests are there, tokens come, or that neither is so has not been shown yet."""
    IDLE = "idle"
    """A live answer, no request running or waiting, and no token since the look before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSums:
    """Sums over decode steps since the engine's start (`decode_moments` of /v1/loads), over all ranks.

    `steps`: decode steps. `requests`: Σ requests of a step, that is verify steps of single requests. `busy_s`: Σ seconds from one
    step's launch to the next. `request_busy_s`: Σ requests × those seconds. `tokens`: accepted drafts, and one token more a request
    and step. Read in SGLang 0.5.23's managers/scheduler.py (`_record_step_counters`, `_accumulate_decode_moment`): only a step that
    follows another decode step within 2 s is in them, and no batch of health probes alone. So they are a true sample of decoding,
    all on one basis, and their tokens are fewer than all tokens where prefills come in between.
    """

    steps: float
    requests: float
    busy_s: float
    request_busy_s: float
    tokens: float

    def __add__(self, other: DecodeSums) -> DecodeSums:
        """Return the sums of both."""
        return DecodeSums(
            steps=self.steps + other.steps,
            requests=self.requests + other.requests,
            busy_s=self.busy_s + other.busy_s,
            request_busy_s=self.request_busy_s + other.request_busy_s,
            tokens=self.tokens + other.tokens,
        )

    def since(self, before: DecodeSums) -> DecodeSums | None:
        """Return what was gained; None where any of them went back, that is after a restart."""
        gained = (
            self.steps - before.steps,
            self.requests - before.requests,
            self.busy_s - before.busy_s,
            self.request_busy_s - before.request_busy_s,
            self.tokens - before.tokens,
        )
        if min(gained) < -ROUNDING:
            return None
        steps, requests, busy_s, request_busy_s, tokens = (max(gain, 0.0) for gain in gained)
        return DecodeSums(steps=steps, requests=requests, busy_s=busy_s, request_busy_s=request_busy_s, tokens=tokens)

    @property
    def accept_length(self) -> float | None:
        """Return tokens committed a verify step of one request, bonus token included; None where no step was counted.

        The only figure that a chain and a tree share: accept *rates* are per draft there and per node here, so none is kept.
        """
        return self.tokens / self.requests if self.requests > 0 else None

    @property
    def batch(self) -> float | None:
        """Return the time-weighted mean of requests in a decode step of one rank."""
        return self.request_busy_s / self.busy_s if self.busy_s > 0 else None

    @property
    def tokens_s(self) -> float | None:
        """Return tokens a second of decoding, of one rank; prefill and idle time are not in it."""
        return self.tokens / self.busy_s if self.busy_s > 0 else None

    @property
    def request_tokens_s(self) -> float | None:
        """Return tokens a second of one request while it decodes: the inverse of its time per output token."""
        return self.tokens / self.request_busy_s if self.request_busy_s > 0 else None

    @property
    def step_s(self) -> float | None:
        """Return seconds of a decode step."""
        return self.busy_s / self.steps if self.steps > 0 else None


NO_STEPS = DecodeSums(steps=0.0, requests=0.0, busy_s=0.0, request_busy_s=0.0, tokens=0.0)
"""The sums of an engine that has not decoded yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """One answer of /v1/loads: what the scheduler last published, summed over data-parallel ranks.

    `age_s`: seconds between the oldest rank's publication and the answer, on the engine's own clock. `used_tokens`: tokens in the
    KV pool of requests that run, `pool_tokens`: those that fit into it. `lifetime_accept_length`: average since start, bonus token
    included; None before the first decode line, after a reset and without speculation.
    """

    running: int | None = None
    waiting: int | None = None
    max_running: int | None = None
    used_tokens: int | None = None
    pool_tokens: int | None = None
    age_s: float | None = None
    lifetime_accept_length: float | None = None
    decoded: DecodeSums | None = None
    ranks: int = 0
    version: str | None = None

    @property
    def kv_ratio(self) -> float | None:
        """Return the share of the KV pool that is used, 0 to 1; None where either is not told."""
        return None if self.used_tokens is None or not self.pool_tokens else self.used_tokens / self.pool_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the load: what was answered at `at_s`, and whether /ready said 200 (None: not asked, or no answer)."""

    at_s: float
    load: EngineLoad
    ready: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCounters:
    """The wanted families of one page of /metrics; counters since the engine's start, gauges as they stand (they go stale).

    Only `decode_tokens` grows with every step; `generated_tokens`, `verify_calls`, `requests` and `aborted` grow when a request
    ends. `accept_length` is the last log window's, kept for ever when idle; None where it says 0 (no speculation).
    `draft_tokens` is how the engine counts a block (anchor included), 0 without speculation.
    """

    decode_tokens: float | None = None
    generated_tokens: float | None = None
    verify_calls: float | None = None
    requests: float | None = None
    aborted: float | None = None
    retracted: float | None = None
    running: float | None = None
    queued: float | None = None
    accept_length: float | None = None
    draft_tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of /metrics, read at `at_s`."""

    at_s: float
    counters: EngineCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What /server_info claims (arguments and live state, no key, no path): a claim, never a proof.

    `said`: every argument that begins with "speculative_", the live state's over the start's, and what the DDTREE plugin tells.
    `rows`: lists of rows of whole numbers that it tells, such as a table of modes. `seed`: random_seed, which tells one
    start from another. `startup_s`: seconds of the start, by part.
    """

    version: str | None = None
    said: Mapping[str, str | int | float | bool | None] = field(default_factory=lambda: MappingProxyType({}))
    rows: Mapping[str, tuple[Mapping[str, int], ...]] = field(default_factory=lambda: MappingProxyType({}))
    seed: int | None = None
    metrics_enabled: bool | None = None
    adaptive: bool | None = None
    max_running: int | None = None
    context_limit: int | None = None
    lifetime_accept_length: float | None = None
    startup_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLine:
    """One `Decode batch` line: the log window that ended with it.

    `accept_length` includes the bonus token; None for plain decoding. Its accept rate (per draft of a chain, per node of a tree)
    and its throughput (the first line after idle time averages over that) mislead, and are left out. `graph` false: decoded
    eagerly.
    """

    running: int | None = None
    queued: int | None = None
    accept_length: float | None = None
    graph: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """One line that only a tree prints: means over a log window, as the build counts them (profile: counts_root, counts_bonus)."""

    batch: int | None = None
    tree_budget: int | None = None
    nodes: float | None = None
    accepted_drafts: float | None = None
    commit: float | None = None
    depth: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLines:
    """What the log said since the sampler began: counts only grow, the last line of each kind is kept.

    `last_is_tree`: whether the newest decode lines came with a tree's line; None before any. `since_tree`: decode lines since the
    newest tree's line. `fatal`: ids of known fatal texts (engines' log grammar), the newest last, at most a few. `lost`: lines that
    were skipped, too long or too many at a time.
    """

    decode_lines: int = 0
    tree_lines: int = 0
    last_decode: DecodeLine | None = None
    last_tree: TreeLine | None = None
    last_is_tree: bool | None = None
    since_tree: int = 0
    fatal: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What counters of /metrics gained between two pages, the later of which came with this sample.

    `running`: time-weighted mean of running requests meanwhile; None where it was unknown at any moment. `mode` likewise None where
    it changed. `idle`: an idle moment lay in between, so that tokens over `span_s` say nothing of the engine's speed. `alone`: the
    engine tells no sums over decode steps, so that these counters are all there is.
    """

    span_s: float
    decode_tokens: float | None = None
    generated_tokens: float | None = None
    verify_calls: float | None = None
    requests: float | None = None
    running: float | None = None
    mode: Mode | None = None
    idle: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """One tick's knowledge of the engine, ready for window, profile and policy.

    `at_s` monotonic; `span_s`: seconds that this sample stands for, since the sample before; None for the first one. `mode`: what
    it ran in that span, None when that is unknown or changed within it. `decoded`: what the engine's own sums over decode steps
    gained since the sample before, all on one basis; None without an answer, after a restart, and for an engine that has no such
    sums (then `counted` is all there is). They come in lumps (an engine publishes each 15 steps). `context_tokens`: mean tokens in
    the KV pool of a running request. `restarted`: counters went back since the sample before.
    """

    at_s: float
    span_s: float | None
    activity: Activity
    running: int | None = None
    waiting: int | None = None
    max_running: int | None = None
    mode: Mode | None = None
    decoded: DecodeSums | None = None
    ranks: int = 1
    counted: Counted | None = None
    context_tokens: float | None = None
    restarted: bool = False

    @property
    def concurrency(self) -> int | None:
        """Return running + waiting requests; None where it cannot be trusted. Idle is 0."""
        return None if self.running is None or self.waiting is None else self.running + self.waiting
