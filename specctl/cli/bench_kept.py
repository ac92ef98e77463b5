"""`specctl bench list`, `show` and `compare`: what was measured before, from this machine's own files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from specctl.cli import options
from specctl.cli.printed import listing
from specctl.errors import EXIT_OK, UsageError

NAME = Annotated[str, typer.Argument(metavar="BENCH", help="An id, the beginning of one, last, or last-1 (before it).")]


def mount(app: typer.Typer) -> None:
    """Add the commands to the group."""
    app.command("list")(listed)
    app.command("show")(show)
    app.command("compare")(compare)


def listed(as_json: options.JSON = False) -> int:
    """List the benches that are kept here, oldest first."""
    from specctl.measure.bench_wire import as_wire
    from specctl.ops import bench
    from specctl.ui import bench as views

    found, faults = bench.listing()
    for fault in faults:
        typer.echo(f"warning: {fault}", err=True)
    if as_json:
        typer.echo(json.dumps({"benches": [as_wire(each) for each in found], "faults": list(faults)}, indent=2))
        return EXIT_OK
    if not found:
        typer.echo("no bench is kept here: specctl bench --host H", err=True)
        return EXIT_OK
    out = listing()
    out.print(views.listed(found, width=out.width))
    return EXIT_OK


def show(
    name: NAME = "last",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.png|svg", help="Draw it.")] = None,
    as_json: options.JSON = False,
) -> None:
    """Show one bench again."""
    from specctl.cli import bench_run
    from specctl.ops import bench

    if plot is not None:
        bench_run.refuse_plot(plot)
    found = bench.read(name)
    bench_run.show(found, as_json=as_json)
    if plot is not None:
        bench_run.draw(found, plot)


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The one to compare with.")] = "last-1",
    b: Annotated[str, typer.Argument(metavar="B", help="The one that may be better.")] = "last",
    every: Annotated[bool, typer.Option("--all", help="Show every figure.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also where lengths, prompts or kind of load differ.")
    ] = False,
    as_json: options.JSON = False,
) -> None:
    """Compare two benches, figure by figure, with intervals."""
    from specctl.measure import bench_compare as comparing
    from specctl.ops import bench
    from specctl.ui import bench_compare as views

    found = comparing.compare(bench.read(a), bench.read(b))
    if found.refusals and not (anyway and found.rows):
        hint = f"specctl bench compare {a} {b} --anyway" if found.rows else "measure the same levels again"
        raise UsageError(f"they cannot be compared: {'; '.join(found.refusals)}", hint=hint)
    if as_json:
        typer.echo(json.dumps({"comparison": views.as_wire(found)}, indent=2))
        return
    out = listing()
    out.print(views.view(found, every=every))
