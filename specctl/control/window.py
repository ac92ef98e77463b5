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
    properties. `tokens_s`: tokens a second of known time, idle and prefill included. `modes`: those seen, None among them where a
    sample had none. `restarts`: how often counters went back.
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
    if kept and (kept[0].at_s <= begin or kept[-1].at_s >= sample.at_s or len(kept) >= MAX_SAMPLES):
        kept = tuple(old for old in kept if begin < old.at_s < sample.at_s)[-(MAX_SAMPLES - 1) :]
    return replace(window, samples=(*kept, sample))


def last(window: Window, horizon_s: float) -> Window:
    """Return the part of a window that ends with its newest sample and is that long."""
    if not window.samples:
        return window
    begin = window.samples[-1].at_s - horizon_s
    return replace(window, horizon_s=horizon_s, samples=tuple(old for old in window.samples if old.at_s > begin))


def figures(window: Window) -> Figures:
    """Return what the window says as a whole."""
    weighed = [(sample.span_s, sample) for sample in window.samples if sample.span_s is not None]
    known = [(span, sample) for span, sample in weighed if sample.concurrency is not None]
    known_s = sum(span for span, _ in known)
    counted = [(span, sample.decoded) for span, sample in known if sample.decoded is not None]
    decoded = [sums for _, sums in counted]
    decoded_s = sum(span for span, _ in counted)
    total = sum(decoded[1:], decoded[0]) if decoded else None
    contexts = [(span, sample.context_tokens) for span, sample in known if sample.context_tokens is not None]
    return Figures(
        span_s=sum(span for span, _ in weighed),
        known_s=known_s,
        idle_s=sum(span for span, sample in known if sample.activity is Activity.IDLE),
        concurrency=_mean([(span, sample.concurrency) for span, sample in known]),
        running=_mean([(span, sample.running) for span, sample in known]),
        highest=max((sample.concurrency or 0 for _, sample in known), default=None),
        decoded=total,
        tokens_s=total.tokens / decoded_s if total is not None and decoded_s > 0 else None,
        context_tokens=_mean(contexts),
        modes=frozenset(sample.mode for _, sample in known),
        restarts=sum(sample.restarted for sample in window.samples),
    )


def _mean(weighed: list[tuple[float, int | None]] | list[tuple[float, float]]) -> float | None:
    told = [(span, value) for span, value in weighed if value is not None]
    weight = sum(span for span, _ in told)
    return sum(span * value for span, value in told) / weight if weight > 0 else None
