"""Experiments for tests, made of numbers: a trial of two arms whose segments show what the test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specctl.measure import ab_design
from specctl.measure.ab_trial import Ask, Trial
from specctl.measure.ab_types import Arm, Around, LevelSeen, Output, Segment
from specctl.measure.figures import Figures, GpuFigures, Spread

QUIET = Around(
    strangers=(), foreign_cores=0.02, cores=8, stolen_ratio=0.0, temperature_c=41.0, clock_hz=2.1e8, power_w=600.0
)


def figures(tokens_s: float, accept: float = 2.3, power_w: float = 1700.0) -> Figures:
    """Return the figures of a run on GPUs where nothing is wrong."""
    return Figures(
        window_s=20.0,
        requests=4,
        output_tokens=2048,
        tokens_s=tokens_s,
        request_tokens_s=tokens_s * 1.02,
        requests_s=tokens_s / 512,
        ttft=Spread(p50=0.08, p95=0.09, p99=0.1),
        itl=Spread(p50=1 / tokens_s, p95=1.1 / tokens_s, p99=1.3 / tokens_s),
        accept_length=accept,
        verify_steps_s=tokens_s / accept,
        in_flight=1.0,
        prompt_tokens=90.0,
        cached_ratio=0.0,
        foreign_requests=0.0,
        foreign_tokens=0.0,
        client_busy_ratio=0.04,
        gpus=GpuFigures(
            count=8,
            power_w=power_w,
            sm_clock_hz=2.3e9,
            sm_clock_least_hz=2.28e9,
            temperature_c=61.0,
            throttle=("sw_power_cap",),
        ),
    )


def segment(place: int, arm: int, tokens_s: float, *, runs: int = 1, concurrency: Sequence[int] = (1,)) -> Segment:
    """Return a segment that measured the same throughput in every run."""
    levels = tuple(
        LevelSeen(concurrency=each, runs=tuple(figures(tokens_s * each) for _ in range(runs))) for each in concurrency
    )
    output = Output(prompt="p1", tokens=(1, 2, 3, 4))
    return Segment(
        place=place,
        arm=arm,
        began=f"2026-11-29T10:{place:02}:00+00:00",
        load_s=480.0,
        waited_s=6.0,
        settled=True,
        levels=levels,
        outputs=(output,),
        around=QUIET,
    )


def trial(a: Sequence[float], b: Sequence[float], *, concurrency: tuple[int, ...] = (1,)) -> Trial:
    """Return a whole trial: the throughputs of A's and of B's segments, each in the order of time."""
    cycles = len(a) // 2
    order = ab_design.order(2, cycles, seed=0)
    rows = {0: iter(a), 1: iter(b)}
    segments = tuple(segment(place, arm, next(rows[arm]), concurrency=concurrency) for place, arm in enumerate(order))
    return Trial(
        id="ab-20261129-100000-0a1b",
        began="2026-11-29T10:00:00+00:00",
        specctl="0.1.0",
        host="ct200",
        server="k26",
        ask=Ask(a="dflash", b="ddtree:tree_budget=7,topk_cap=1", concurrency=concurrency, cycles=cycles),
        arms=(
            Arm(letter="A", mode="dflash:block_size=8", words=("python", "-m", "engine", "--algo", "DFLASH")),
            Arm(
                letter="B",
                mode="ddtree:tree_budget=7",
                words=("python", "-m", "engine", "--algo", "DDTREE"),
                env={"TREE": "1"},
            ),
        ),
        order=order,
        pairs=((0, 1),),
        before=("3", "dflash"),
        named="speculative algorithm (dflash → ddtree)",
        facts={"GPU 0": "RTX PRO 6000", "prompts": "8ba84c7fa7e0"},
        segments=segments,
    )


def with_segment(whole: Trial, place: int, changed: Segment) -> Trial:
    """Return a trial with one segment in the place of another."""
    rows = list(whole.segments)
    rows[place] = changed
    return replace(whole, segments=tuple(rows))


def with_run(one: Segment, run: Figures) -> Segment:
    """Return a segment whose every run shows these figures."""
    levels = tuple(replace(level, runs=tuple(run for _ in level.runs)) for level in one.levels)
    return replace(one, levels=levels)
