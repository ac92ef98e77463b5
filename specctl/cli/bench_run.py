"""What `specctl bench` shows while it measures, and at its end."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from specctl.cli.printed import listing
from specctl.cli.stopping import interruptible
from specctl.errors import EXIT_INTERRUPTED, EXIT_OK, RemoteCommandError

if TYPE_CHECKING:
    from specctl.measure.bench import Bench
    from specctl.ops.bench_reach import Ready

KEPT = "runs that are whole are kept (Ctrl-C again leaves at once)"


def refuse_plot(path: Path) -> None:
    """Raise UsageError for a file that cannot be drawn, before anything is measured for it."""
    from specctl.adapters import figures

    figures.refuse_other(path)


def show_plan(ready: Ready, *, dry_run: bool, as_json: bool) -> None:
    """Say what will be sent and about how long it takes; on standard output where that is all."""
    if as_json:
        if dry_run:
            typer.echo(json.dumps({"plan": plan_wire(ready)}, indent=2))
        return
    from specctl.ui import bench_plan
    from specctl.ui.theme import console

    wish = ready.wish
    out = console(stderr=not dry_run)
    for line in bench_plan.lines(
        ready.subject,
        wish.setting,
        levels=[wish.name(number) for number in range(len(wish.paces))],
        requests=ready.requests,
        tokens=ready.tokens,
        seconds=ready.seconds,
        running=ready.running,
        warnings=ready.warnings,
    ):
        out.print(line, soft_wrap=not out.is_terminal)


PLAN_FIELDS = ("subject", "setting", "levels", "requests", "tokens", "running", "warnings")


def plan_wire(ready: Ready) -> dict[str, object]:
    """Return what `--dry-run --json` prints (docs/json.md)."""
    import dataclasses

    wish = ready.wish
    found = (
        dataclasses.asdict(ready.subject),
        dataclasses.asdict(wish.setting),
        [wish.name(number) for number in range(len(wish.paces))],
        ready.requests,
        ready.tokens,
        ready.running,
        list(ready.warnings),
    )
    return dict(zip(PLAN_FIELDS, found, strict=True))


def run(ready: Ready, *, as_json: bool) -> Bench:
    """Measure under a live view; the first Ctrl-C ends the run under way and keeps whole runs, a second leaves at once."""
    from specctl.ops import bench, bench_told
    from specctl.ui.board import Board, Mode, mode_for
    from specctl.ui.theme import console

    screen, host = console(stderr=True), ready.subject.host
    mode = mode_for(screen, json_asked=as_json)
    cancel = threading.Event()
    drawn = mode is Mode.LIVE and not screen.options.ascii_only
    with Board(screen, mode, hosts=(host,)) as board, interruptible(cancel, KEPT):
        return bench.measure(
            ready,
            show=bench_told.stepping(board, host, drawn=drawn),
            tell=bench_told.telling(board, host),
            warn=bench_told.warning(board, host),
            cancel=cancel,
        )


def finish(found: Bench, *, plot: Path | None, as_json: bool) -> int:
    """Show what was measured and return the exit code; a bench that is not whole says so in it."""
    from specctl.ops.bench import INTERRUPTED

    if found.levels:
        show(found, as_json=as_json)
        if plot is not None:
            draw(found, plot)
        if not as_json:
            typer.echo(f"kept as {found.id}      see also: specctl bench list, specctl bench compare", err=True)
    if found.stopped is None:
        return EXIT_OK
    if found.stopped == INTERRUPTED:
        return EXIT_INTERRUPTED
    raise RemoteCommandError(
        f"the bench is not whole: {found.stopped}",
        hint=f"specctl health --host {found.subject.host}",
        host=found.subject.host,
    )


def show(found: Bench, *, as_json: bool) -> None:
    """Print a bench as a table, or as JSON."""
    if as_json:
        from specctl.measure.bench_wire import as_wire

        typer.echo(json.dumps({"bench": as_wire(found)}, indent=2))
        return
    from specctl.ui import bench as views

    out = listing()
    out.print(views.view(found, width=out.width))


def draw(found: Bench, path: Path) -> None:
    """Draw a bench into a file; raises UsageError where it cannot be written."""
    from specctl.adapters import figures
    from specctl.measure.bench_figure import figure

    figures.draw(figure(found), path)
