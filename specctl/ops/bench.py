"""Measure a server level by level, and keep what was measured; called by cli/bench.py, which shows how far it is.

Every level is kept as soon as it is whole, so that whatever ends a bench loses one level at most. Nothing on the host is changed
and no lease is taken: a deploy in between must win, and is noticed by the engine's own word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from specctl.adapters import runs
from specctl.errors import SpecctlError, UsageError
from specctl.measure import bench_wire
from specctl.measure.bench import Bench, Measured
from specctl.measure.bench_doubts import doubts, grouped
from specctl.measure.figures import Figures, figures
from specctl.measure.load import Closed, Run
from specctl.measure.load_plan import ASSUMED_CHARS_A_TOKEN
from specctl.ops.bench_reach import Ready
from specctl.ops.load import Progress, run_level
from specctl.ops.load_gpus import GpuWatch

KIND = "bench"
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a bench is: the level and run under way, counted from 1, and how far that run is."""

    level: str
    number: int
    levels: int
    run: int
    runs: int
    progress: Progress

    @property
    def share(self) -> float:
        """Return the part of all runs that is done, 0 to 1; a run counts as one however long it is."""
        done = (self.number - 1) * self.runs + self.run - 1 + self.progress.share
        return done / (self.levels * self.runs)


Show = Callable[[Step], None]
Tell = Callable[[Bench, Measured], None]


def measure(ready: Ready, *, show: Show, tell: Tell, warn: Callable[[str], None], cancel: threading.Event) -> Bench:
    """Measure all levels; `tell` is given each that is whole. A bench that is not whole says why in `stopped`, and is kept too.

    Raises UsageError before anything is sent where nothing can be kept; `warn` is told where that happens later. Raises the
    SpecctlError that ends it, a host that is lost, when what is whole is kept.
    """
    bench = Bench(
        id=runs.new_id(KIND),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        subject=ready.subject,
        setting=ready.wish.setting,
        note=ready.wish.note,
        stopped="not finished",
    )
    stopped: str | None = None
    keep(bench)
    try:
        with GpuWatch(ready.contact) as watch:
            for number in range(len(ready.wish.paces)):
                level, stopped = _level(ready, number, watch, show, cancel)
                bench = replace(bench, gpu_source=watch.source)
                if level.runs:
                    bench = replace(bench, levels=(*bench.levels, level))
                    _keep_on(bench, warn)
                    tell(bench, level)
                if stopped is not None:
                    break
    except SpecctlError as error:
        _keep_or_forget(replace(bench, stopped=error.message), warn)
        if bench.levels:
            warn(f"kept as {bench.id}, as far as it is whole")
        raise
    bench = replace(bench, stopped=stopped)
    _keep_or_forget(bench, warn)
    return bench


def _keep_or_forget(bench: Bench, warn: Callable[[str], None]) -> None:
    """Keep what came of a bench; one without a level is none."""
    if bench.levels:
        _keep_on(bench, warn)
    else:
        runs.forget(bench.id)


def _keep_on(bench: Bench, warn: Callable[[str], None]) -> None:
    """Keep a bench as it stands; a disk that has become full must not end it, for what was measured is shown all the same."""
    try:
        keep(bench)
    except UsageError as error:
        warn(error.message)


def _level(
    ready: Ready, number: int, watch: GpuWatch, show: Show, cancel: threading.Event
) -> tuple[Measured, str | None]:
    """Measure one level; returns what its whole runs gave, and why the bench cannot go on, or None."""
    wish, told, notes = ready.wish, list[Figures](), list[str]()
    stopped: str | None = None
    for turn in range(wish.setting.runs):
        run = run_level(
            ready.client,
            wish.level(number, turn),
            wish.prompts,
            show=_stepping(ready, number, turn, show),
            cancel=cancel,
            watch=watch,
            chars_a_token=ready.probe.chars_a_token if ready.probe else ASSUMED_CHARS_A_TOKEN,
        )
        stopped = INTERRUPTED if cancel.is_set() else changed(ready, run) or (run.stopped if run.gave_up else None)
        if stopped is not None:
            break
        found = figures(run)
        told.append(found)
        notes.extend(doubts(run, found))
    pace = wish.paces[number]
    count = pace.concurrency if isinstance(pace, Closed) else None
    return Measured(name=wish.name(number), concurrency=count, runs=tuple(told), notes=grouped(notes)), stopped


def _stepping(ready: Ready, number: int, turn: int, show: Show) -> Callable[[Progress], None]:
    """Return what turns a run's progress into the bench's."""
    wish = ready.wish
    name, levels, count = wish.name(number), len(wish.paces), wish.setting.runs

    def tell(now: Progress) -> None:
        show(Step(level=name, number=number + 1, levels=levels, run=turn + 1, runs=count, progress=now))

    return tell


def changed(ready: Ready, run: Run) -> str | None:
    """Say how the server changed under a run, by the engine's own word; None where it did not, or does not tell."""
    before, after = run.before, run.after
    seeds = {each.seed for each in (before, after) if each is not None and each.seed is not None}
    known = ready.subject.engine_seed
    if known is not None and seeds - {known}:
        return "the engine was started anew meanwhile"
    now = ready.mode()
    if now is not None and ready.subject.mode is not None and now != ready.subject.mode:
        return f"the engine went from {ready.subject.mode} to {now} meanwhile"
    return None


def keep(bench: Bench) -> None:
    """Keep a bench as it stands; raises UsageError where that fails."""
    runs.keep(bench.id, {"kind": KIND, **bench_wire.as_wire(bench)})


def read(name: str) -> Bench:
    """Return a bench that was kept; raises UsageError or UnsupportedError."""
    return _bench(runs.read(KIND, name))


def listing() -> tuple[tuple[Bench, ...], tuple[str, ...]]:
    """Return all benches that were kept, oldest first, and a sentence for each file that cannot be used."""
    found, faults = list[Bench](), list[str]()
    kept = runs.listing(KIND)
    for each in kept.runs:
        try:
            found.append(_bench(each))
        except UsageError as error:
            faults.append(error.message)
    return tuple(found), (*kept.faults, *faults)


def _bench(kept: runs.Kept) -> Bench:
    try:
        return bench_wire.from_wire(kept.content)
    except ValueError as error:
        raise UsageError(f"{runs.folder() / kept.id}.json: {error}", hint="remove the file") from error
