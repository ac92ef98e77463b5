"""`specctl render`: print what would be written to a host, without reaching it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from specctl.cli import options

TEMPLATES = Annotated[
    list[Path] | None, typer.Option("--templates", help="A folder of templates that come before the shipped ones.")
]


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("render")(render)


@options.selecting()
def render(
    chosen: options.Chosen,
    algo: Annotated[
        str | None, typer.Option("--algo", metavar="ALGO", help="none, dflash or ddtree; else the inventory's.")
    ] = None,
    knob: Annotated[
        list[str] | None, typer.Option("--knob", help="A knob of the algo, NAME=NUMBER.", metavar="K=N")
    ] = None,
    templates: TEMPLATES = None,
    as_json: options.JSON = False,
) -> None:
    """Print the unit that a deploy would write; secrets are not read, and no host is reached."""
    from specctl.adapters.templates import Templates
    from specctl.ops import inventory as fleets
    from specctl.ops.render import unit_text
    from specctl.rollout import launch as launches

    overrides = fleets.Overrides(algo=algo, knobs=options.knobs(knob))
    selected = chosen.pairs(overrides)
    found = Templates(tuple(templates or ()))
    rows = []
    for one_host, one_server in selected:
        launch = launches.build(one_host, one_server, algo or one_server.algo)
        text = unit_text(found, one_host, one_server, launch, "N")
        rows.append(
            {"host": one_host.name, "server": one_server.name, "algo": launch.algo, "unit": text, **launch.as_wire()}
        )
    if as_json:
        typer.echo(json.dumps({"launches": rows}, indent=2))
        return
    for row in rows:
        if len(rows) > 1:
            typer.echo(f"# --- {row['host']} {row['server']} {row['algo']}")
        typer.echo(str(row["unit"]), nl=False)
