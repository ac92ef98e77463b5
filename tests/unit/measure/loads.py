"""Runs for tests: answers whose chunks come evenly, laid out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from specctl.control.sample.engine import EngineCounters
from specctl.measure.load import Client, Closed, Counters, Level, Run, Timing


def answer(
    sent_s: float,
    ended_s: float,
    *,
    tokens: int = 10,
    chunk: int = 1,
    slot: int = 0,
    number: int = 0,
    warmup: bool = False,
    verify_steps: int | None = None,
) -> Timing:
    """Return a whole answer whose chunks of so many tokens come evenly, the first after a first part, the last at its end."""
    counts = [*range(1, tokens, chunk), tokens]
    step_s = (ended_s - sent_s) / len(counts)
    return Timing(
        number=number,
        prompt="p",
        asked_tokens=tokens,
        slot=slot,
        sent_s=sent_s,
        ended_s=ended_s,
        first_s=sent_s + step_s,
        at_s=(*tuple(sent_s + step_s * place for place in range(1, len(counts))), ended_s),
        counts=tuple(counts),
        prompt_tokens=20,
        cached_tokens=0,
        output_tokens=tokens,
        verify_steps=verify_steps,
        finish="length",
        warmup=warmup,
    )


def run(timings: Sequence[Timing], *, concurrency: int = 1, tokens: int = 10, **over: object) -> Run:
    """Return a closed loop's run."""
    level = Level(pace=Closed(concurrency=concurrency), tokens=tokens)
    made = Run(level=level, timings=tuple(timings), client=Client(cpu_s=0.1, wall_s=1.0))
    return replace(made, **over)  # type: ignore[arg-type]  # what a test overrides


def counted(requests: float | None, tokens: float | None, *, seed: int = 1) -> Counters:
    """Return counters of an engine."""
    return Counters(at_s=0.0, page=EngineCounters(requests=requests, generated_tokens=tokens), seed=seed)


def most_in_flight(timings: Sequence[Timing]) -> int:
    """Return the largest number of requests that were in flight at once; one that ends as another begins is not counted twice."""
    moments = sorted([(each.sent_s, 1) for each in timings] + [(each.ended_s, -1) for each in timings])
    return max(itertools.accumulate(step for _, step in moments), default=0)
