"""One bench as a value: what was measured, of what, how, and the figures of every run of every level; kept, shown, compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from specctl.measure.figures import Figures, Spread
from specctl.measure.intervals import Interval, median_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was measured, as far as it is known: the server, what it claims to run, whether a deploy proved that, and the machine.

    `launch_digest`: of argv and environment of the release that is deployed. `engine_seed` tells one start of the engine from
    another. `gpus` as in "8× RTX PRO 6000".
    """

    host: str
    server: str
    profile: str
    mode: str | None = None
    proven: bool | None = None
    engine_version: str | None = None
    engine_seed: int | None = None
    release: str | None = None
    launch_digest: str | None = None
    target: str | None = None
    draft: str | None = None
    gpus: str | None = None
    driver: str | None = None
    kernel: str | None = None
    specctl: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How it was measured. `pace`: closed, open or trace; `tokens` None where a trace has its own lengths."""

    pace: str
    runs: int
    prompts: str
    prompts_digest: str
    tokens: int | None = None
    warmup: int = 1
    rounds: int = 3
    seconds: float = 0.0
    seed: int = 0
    temperature: float = 0.0
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One level: its name (`8` requests in flight, `2.5/s`, a trace), and the figures of its runs.

    `concurrency`: of a closed loop. `notes`: what makes its figures doubtful, in sentences.
    """

    name: str
    concurrency: int | None = None
    runs: tuple[Figures, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One bench. `at`: when it began (ISO 8601, UTC). `stopped`: why it is not whole, or None. `gpu_source`: who told of GPUs."""

    id: str
    at: str
    subject: Subject
    setting: Setting
    levels: tuple[Measured, ...] = ()
    note: str | None = None
    stopped: str | None = None
    gpu_source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure with its name, unit, and which way is better (1: more, -1: less, 0: neither)."""

    name: str
    unit: str
    get: Callable[[Figures], float | None]
    better: int = 0


def _of(spread: Callable[[Figures], Spread | None], part: str) -> Callable[[Figures], float | None]:
    def get(figures: Figures) -> float | None:
        found = spread(figures)
        return None if found is None else float(getattr(found, part))

    return get


METRICS: tuple[Metric, ...] = (
    Metric(name="tokens_s", unit="tok/s", get=lambda each: each.tokens_s, better=1),
    Metric(name="request_tokens_s", unit="tok/s", get=lambda each: each.request_tokens_s, better=1),
    Metric(name="requests_s", unit="1/s", get=lambda each: each.requests_s, better=1),
    Metric(name="ttft_p50_s", unit="s", get=_of(lambda each: each.ttft, "p50"), better=-1),
    Metric(name="ttft_p95_s", unit="s", get=_of(lambda each: each.ttft, "p95"), better=-1),
    Metric(name="ttft_p99_s", unit="s", get=_of(lambda each: each.ttft, "p99"), better=-1),
    Metric(name="itl_p50_s", unit="s", get=_of(lambda each: each.itl, "p50"), better=-1),
    Metric(name="itl_p95_s", unit="s", get=_of(lambda each: each.itl, "p95"), better=-1),
    Metric(name="itl_p99_s", unit="s", get=_of(lambda each: each.itl, "p99"), better=-1),
    Metric(name="gap_p50_s", unit="s", get=_of(lambda each: each.gap, "p50"), better=-1),
    Metric(name="gap_p95_s", unit="s", get=_of(lambda each: each.gap, "p95"), better=-1),
    Metric(name="gap_p99_s", unit="s", get=_of(lambda each: each.gap, "p99"), better=-1),
    Metric(name="tpot_s", unit="s", get=lambda each: each.tpot_s, better=-1),
    Metric(name="latency_p50_s", unit="s", get=_of(lambda each: each.latency, "p50"), better=-1),
    Metric(name="latency_p95_s", unit="s", get=_of(lambda each: each.latency, "p95"), better=-1),
    Metric(name="latency_p99_s", unit="s", get=_of(lambda each: each.latency, "p99"), better=-1),
    Metric(name="accept_length", unit="tok/step", get=lambda each: each.accept_length, better=1),
    Metric(name="verify_steps_s", unit="1/s", get=lambda each: each.verify_steps_s, better=1),
    Metric(name="power_w", unit="W", get=lambda each: each.gpus.power_w if each.gpus else None),
    Metric(name="sm_clock_hz", unit="Hz", get=lambda each: each.gpus.sm_clock_hz if each.gpus else None),
)
BY_NAME = {metric.name: metric for metric in METRICS}


def values(level: Measured, name: str) -> tuple[float, ...]:
    """Return a figure of every run of a level that tells it."""
    metric = BY_NAME[name]
    return tuple(value for each in level.runs if (value := metric.get(each)) is not None)


def middle(level: Measured, name: str) -> float | None:
    """Return the median of a figure over a level's runs; None where not every run tells it."""
    found = values(level, name)
    return median(found) if found and len(found) == len(level.runs) else None


def summary(level: Measured, name: str) -> Interval | None:
    """Return `middle` with its bootstrap interval, which takes some milliseconds of many runs."""
    return None if middle(level, name) is None else median_of(values(level, name))
