"""What a bench says while it runs: how far it is, what each level came to, and what went wrong beside it."""

from __future__ import annotations

from collections.abc import Callable

from specctl.measure.bench import Bench, Measured, middle
from specctl.ops.bench import Show, Step, Tell
from specctl.ops.reporter import Reporter
from specctl.ui import bench as words
from specctl.ui import bench_plan


def stepping(reporter: Reporter, host: str, *, drawn: bool) -> Show:
    """Return what shows how far a bench is; `drawn`: with a bar, for a terminal."""

    def show(step: Step) -> None:
        now = step.progress
        rest = f"{now.in_flight} in flight  {now.tokens:,} tokens"
        rest += f", {now.failed} failed" if now.failed else ""
        text = bench_plan.progress(
            level=step.level,
            number=step.number,
            levels=step.levels,
            run=step.run,
            runs=step.runs,
            share=step.share,
            rest=rest,
            drawn=drawn,
        )
        reporter.step(host, "bench", text)

    return show


def telling(reporter: Reporter, host: str) -> Tell:
    """Return what says what a level came to."""

    def tell(_bench: Bench, level: Measured) -> None:
        length = middle(level, "accept_length")
        said = f"{level.name}: {words.rate(middle(level, 'tokens_s'))} tok/s"
        said += "" if length is None else f", accept {length:.2f}"
        doubts = "1 doubt" if len(level.notes) == 1 else f"{len(level.notes)} doubts"
        reporter.final(host, "measured", f"{said}; {doubts}" if level.notes else said)

    return tell


def warning(reporter: Reporter, host: str) -> Callable[[str], None]:
    """Return what says that something could not be kept."""
    return lambda text: reporter.final(host, "warning", text)
