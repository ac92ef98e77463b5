"""Benches for tests, laid out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specctl.measure.bench import Bench, Measured, Setting, Subject
from specctl.measure.figures import Figures, GpuFigures, Spread

SUBJECT = Subject(
    host="gpu1", server="chat", profile="sglang-0.5.23", mode="dflash:block_size=8", gpus="8× H200", release="3"
)
SETTING = Setting(pace="closed", runs=3, prompts="mixed", prompts_digest="abc123", tokens=512, seed=5)


def one_run(tokens_s: float, **over: object) -> Figures:
    """Return the figures of a run at a speed."""
    spread = Spread(p50=1 / tokens_s, p95=2 / tokens_s, p99=3 / tokens_s)
    made = Figures(
        window_s=10.0, requests=30, output_tokens=int(tokens_s * 10), tokens_s=tokens_s, request_tokens_s=tokens_s / 2,
        requests_s=3.0, ttft=Spread(p50=0.02, p95=0.03, p99=0.04), latency=spread, gap=spread, itl=spread,
        tpot_s=2 / tokens_s, accept_length=2.5, verify_steps_s=tokens_s / 5, in_flight=2.0, prompt_tokens=40.0,
        cached_ratio=0.0, client_lag_s=0.001, foreign_requests=0.0, foreign_tokens=0.0, client_busy_ratio=0.1, late_s=0.0,
        gpus=GpuFigures(count=8, power_w=4000.0, sm_clock_hz=1.9e9, throttle=("sw_power_cap",)),
    )  # fmt: skip
    return replace(made, **over)  # type: ignore[arg-type]  # what a test overrides


def level(name: str, speeds: Sequence[float], **over: object) -> Measured:
    """Return a level whose runs had these speeds."""
    made = Measured(name=name, concurrency=int(name), runs=tuple(one_run(speed) for speed in speeds))
    return replace(made, **over)  # type: ignore[arg-type]  # as above


def bench(speeds: Sequence[float] = (100.0, 102.0, 101.0), **over: object) -> Bench:
    """Return a bench of two levels."""
    levels = (level("1", speeds), level("8", [speed * 4 for speed in speeds]))
    made = Bench(
        id="bench-20261130-020000-abcd",
        at="2026-11-30T02:00:00+00:00",
        subject=SUBJECT,
        setting=SETTING,
        levels=levels,
        note="a remark",
    )
    return replace(made, **over)  # type: ignore[arg-type]  # as above
