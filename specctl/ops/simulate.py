"""Replay a trace through every policy: read, size, compare; called by cli/simulate.py. Reads two files and reaches no host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from specctl.adapters import trace_files
from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.replay import compare, ours, outage, sizing
from specctl.control.replay.arrivals import Lengths
from specctl.control.replay.compare import Comparison, Row, Setting, Task
from specctl.control.replay.formats import Trace
from specctl.control.replay.load import Requests, Series
from specctl.control.replay.service import Service
from specctl.control.replay.sizing import Size
from specctl.errors import UsageError
from specctl.fleet.suggest import listed
from specctl.measure import simulate_plot
from specctl.ui.simulate import title

# What --start may say beside a mode.
PRIOR, BEST, WORST = "prior", "best", "worst"
# From so many requests, or steps of a series, on, policies are worked out side by side.
LONG = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a simulation is asked for; `scale`: a ratio of the trace's own load, where `peak` does not set its busiest minute's."""

    trace: str
    model: str
    cost: str
    metric: Metric = Metric.LATENCY
    scale: float = 1.0
    peak: float | None = None
    start: str = PRIOR
    policies: Sequence[str] = ()
    lengths: Lengths = field(default_factory=Lengths)
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What came of it; `shown`: the rows of the policies that were asked for, and the yardstick."""

    size: Size
    comparison: Comparison
    shown: Sequence[Row]


def simulate(request: Request) -> Simulation:
    """Compare the policies; raises UsageError for what cannot be read or meant."""
    service = trace_files.read_model(request.model)
    with _meant("--cost live, restart or seconds"):
        price = outage.parse(request.cost)
    load = sized(trace_files.read_trace(request.trace), service, request)
    setting = Setting(
        service=service,
        objective=Objective(metric=request.metric),
        outage=price,
        start=ours.prior_choice(service, Objective(metric=request.metric)),
    )
    fixed = compare.statics(setting, load)
    setting = replace(setting, start=_start(request.start, setting, fixed))
    found = compare.compare(setting, load, ours.maker, fixed, run=_at_once if _long(load) else map)
    size = sizing.size(PurePath(request.trace).name, load, service)
    return Simulation(size=size, comparison=found, shown=_shown(found, request.policies))


def refuse_plot(path: str) -> None:
    """Raise UsageError where a plot of that name cannot be drawn; asked before a long replay."""
    from specctl.adapters import figures

    figures.refuse_other(Path(path))


def write_plot(found: Simulation, path: str) -> None:
    """Draw a simulation into a file; raises UsageError where it cannot be written."""
    from specctl.adapters import figures

    heading = title(found.size, found.comparison)
    figures.draw(simulate_plot.figure(found.comparison, found.shown, title=heading), Path(path))


def lengths(prompt: float, answer: float) -> Lengths:
    """Return mean lengths for a trace that has rates alone; raises UsageError for those that cannot be."""
    with _meant("--prompt-tokens 1000 --answer-tokens 500"):
        return Lengths(prompt=prompt, answer=answer)


def sized(trace: Trace, service: Service, request: Request) -> Requests | Series:
    """Return the load that a request asks for; raises UsageError where the trace cannot be made so."""
    with _meant("choose another --scale or --load"):
        if request.peak is not None:
            return sizing.by_peak(trace, request.peak, service, request.lengths, request.seed)
        return sizing.by_scale(trace, request.scale, request.lengths, request.seed)


def _start(text: str, setting: Setting, fixed: Sequence[Row]) -> Mode:
    """Return the mode to begin with; raises UsageError where the model does not have it."""
    known = {PRIOR: setting.start, BEST: compare.best_mode(fixed), WORST: compare.worst_mode(fixed)}
    if text in known:
        return known[text]
    words = listed([*known, *map(str, setting.service.rates)], most=16)
    with _meant(f"--start {words}"):
        wanted = modes.parse(text)
    if wanted not in setting.service.rates:
        raise UsageError(f"the model has no mode {text}", hint=f"--start {words}")
    return wanted


def _shown(found: Comparison, policies: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows of the policies that are to be shown, and the yardstick; raises UsageError for one that there is not."""
    names = {row.policy for row in found.rows} | {row.name for row in found.rows}
    strangers = [name for name in policies if name not in names]
    if strangers:
        raise UsageError(f"there is no policy {strangers[0]}", hint=f"--policy {listed(sorted(names), most=16)}")
    rows = [row for row in found.rows if not policies or {row.policy, row.name} & set(policies)]
    return tuple(rows if found.yardstick in rows else [*rows, found.yardstick])


def _long(load: Requests | Series) -> bool:
    return len(load.levels if isinstance(load, Series) else load) >= LONG


def _at_once(work: Callable[[Task], Row], tasks: Sequence[Task]) -> list[Row]:
    """Work tasks out in as many processes as there are cores; starting these only pays for long loads."""
    with ProcessPoolExecutor(max_workers=min(len(tasks), os.cpu_count() or 1)) as pool:
        return list(pool.map(work, tasks))


@contextmanager
def _meant(hint: str) -> Iterator[None]:
    """Turn a ValueError of what was asked for into a UsageError with a hint."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error), hint=hint) from error
