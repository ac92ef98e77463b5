"""The last minutes of an engine, sample by sample: concurrency, tokens a second and accept length over one span on one basis.

Pure; the loop folds each EngineSample into it and the policy and the audit read `figures`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specctl.control.mode import Mode
from specctl.control.sample.engine import Activity, DecodeSums, EngineSample

HORIZON_S = 300.0
MAX_SAMPLES = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Samples of the last `horizon_s` seconds, at most MAX_SAMPLES, the newest last."""

    horizon_s: float = HORIZON_S
    samples: tuple[EngineSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a window says; every mean is time-weighted, unknown time is left out of it and told beside it.

    `span_s` is covered by samples, `known_s` of that with a concurrency that can be trusted, `idle_s` of that idle. `decoded`:
    the engine's sums over decode steps in the window; accept length, step seconds and tokens a second of decoding are its
    properties. `tokens_s`: tokens a second, by realtime_tokens_total between the first and the last page in the window, idle time
    and prefill included; None without two pages (decode steps do not count every token: see DecodeSums). `modes`: those seen, None
    among them where a sample had none. `restarts`: how often counters went back.
    """

    span_s: float = 0.0
    known_s: float = 0.0
    idle_s: float = 0.0
    concurrency: float | None = None
    running: float | None = None
    highest: int | None = None
    decoded: DecodeSums | None = None
    tokens_s: float | None = None
    context_tokens: float | None = None
    modes: frozenset[Mode | None] = frozenset()
    restarts: int = 0


def observe(window: Window, sample: EngineSample) -> Window:
    """Add a sample and drop what is older than the horizon; samples from after it (a clock that went back) are dropped too."""
    begin = sample.at_s - window.horizon_s
    kept = window.samples
    old = next((place for place, one in enumerate(kept) if one.at_s > begin), len(kept))
    kept = kept[max(old, len(kept) + 1 - MAX_SAMPLES) :]
    if kept and kept[-1].at_s >= sample.at_s:
        kept = tuple(one for one in kept if one.at_s < sample.at_s)
    return replace(window, samples=(*kept, sample))


def last(window: Window, horizon_s: float) -> Window:
    """Return the part of a window that ends with its newest sample and is that long."""
    if not window.samples:
        return window
    begin = window.samples[-1].at_s - horizon_s
    return replace(window, horizon_s=horizon_s, samples=tuple(old for old in window.samples if old.at_s > begin))


@dataclass(slots=True)
class _Sums:
    """What one pass over the samples adds up; plain numbers, for the loop does this each second over hundreds of samples."""

    span_s: float = 0.0
    known_s: float = 0.0
    idle_s: float = 0.0
    request_s: float = 0.0
    running_s: float = 0.0
    highest: int = 0
    gains: int = 0
    paged_s: float = 0.0
    paged_tokens: float = 0.0
    steps: float = 0.0
    requests: float = 0.0
    busy_s: float = 0.0
    request_busy_s: float = 0.0
    tokens: float = 0.0
    context_s: float = 0.0
    context_token_s: float = 0.0

    def known(self, sample: EngineSample, running: int, waiting: int, span: float) -> None:
        """Add a sample with a concurrency."""
        self.known_s += span
        self.request_s += span * (running + waiting)
        self.running_s += span * running
        self.highest = max(self.highest, running + waiting)
        if sample.activity is Activity.IDLE:
            self.idle_s += span
        if sample.context_tokens is not None:
            self.context_s += span
            self.context_token_s += span * sample.context_tokens

    def gain(self, sums: DecodeSums) -> None:
        """Add what decode steps of a sample with a concurrency gained."""
        self.gains += 1
        self.steps += sums.steps
        self.requests += sums.requests
        self.busy_s += sums.busy_s
        self.request_busy_s += sums.request_busy_s
        self.tokens += sums.tokens


def figures(window: Window) -> Figures:
    """Return what the window says as a whole."""
    sums = _Sums()
    modes: set[Mode | None] = set()
    restarts = 0
    for sample in window.samples:
        restarts += sample.restarted
        if sample.counted is not None and sample.counted.decode_tokens is not None:
            sums.paged_s += sample.counted.span_s
            sums.paged_tokens += sample.counted.decode_tokens
        span, running, waiting = sample.span_s, sample.running, sample.waiting
        if span is None:
            continue
        sums.span_s += span
        if running is None or waiting is None:
            continue
        modes.add(sample.mode)
        sums.known(sample, running, waiting, span)
        if sample.decoded is not None:
            sums.gain(sample.decoded)
    return _figures(sums, frozenset(modes), restarts)


def _figures(sums: _Sums, modes: frozenset[Mode | None], restarts: int) -> Figures:
    decoded = DecodeSums(
        steps=sums.steps,
        requests=sums.requests,
        busy_s=sums.busy_s,
        request_busy_s=sums.request_busy_s,
        tokens=sums.tokens,
    )
    return Figures(
        span_s=sums.span_s,
        known_s=sums.known_s,
        idle_s=sums.idle_s,
        concurrency=_ratio(sums.request_s, sums.known_s),
        running=_ratio(sums.running_s, sums.known_s),
        highest=sums.highest if modes else None,
        decoded=decoded if sums.gains else None,
        tokens_s=_ratio(sums.paged_tokens, sums.paged_s),
        context_tokens=_ratio(sums.context_token_s, sums.context_s),
        modes=modes,
        restarts=restarts,
    )


def _ratio(total: float, weight: float) -> float | None:
    return total / weight if weight > 0 else None
