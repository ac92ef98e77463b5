"""The commands that start, stop and remove servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.cli.stopping import interruptible

if TYPE_CHECKING:
    from specctl.fleet.types import Host, Server
    from specctl.ops.lifecycle import Work
    from specctl.rollout.record import Act

GOES_ON = "a server that still drains goes on serving (Ctrl-C again leaves at once)"
INTERRUPTED: Mapping[str, str] = {
    "start": "stopping it again (Ctrl-C again leaves it as it is)",
    "stop": GOES_ON,
    "undeploy": GOES_ON,
}


def mount(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command("start")(start)
    app.command("stop")(stop)
    app.command("undeploy")(undeploy)


@options.selecting()
def start(
    chosen: options.Chosen,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    steal_lock: options.STEAL = False,
    as_json: options.JSON = False,
) -> int:
    """Start what is deployed and gate it."""
    from specctl.ops import lifecycle
    from specctl.rollout.record import Act

    selected = chosen.pairs()
    return _run(selected, Act.START, lifecycle.Start(), yes=yes, dry_run=dry_run, steal=steal_lock, as_json=as_json)


@options.selecting()
def stop(
    chosen: options.Chosen,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    steal_lock: options.STEAL = False,
    as_json: options.JSON = False,
) -> int:
    """Drain and stop servers; a reboot or `specctl start` brings them back."""
    from specctl.ops import lifecycle
    from specctl.rollout.record import Act

    selected = chosen.pairs()
    return _run(selected, Act.STOP, lifecycle.Stop(), yes=yes, dry_run=dry_run, steal=steal_lock, as_json=as_json)


@options.selecting()
def undeploy(
    chosen: options.Chosen,
    purge: Annotated[bool, typer.Option("--purge", help="Remove the releases too; records stay.")] = False,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    steal_lock: options.STEAL = False,
    as_json: options.JSON = False,
) -> int:
    """Drain, stop and take servers off their hosts."""
    from specctl.ops import lifecycle
    from specctl.rollout.record import Act

    selected = chosen.pairs()
    work = lifecycle.Undeploy(purge=purge)
    return _run(selected, Act.UNDEPLOY, work, yes=yes, dry_run=dry_run, steal=steal_lock, as_json=as_json)


def _run(
    selected: Sequence[tuple[Host, Server]],
    act: Act,
    work: Work,
    *,
    yes: bool,
    dry_run: bool,
    steal: bool,
    as_json: bool,
) -> int:
    """Say what will be done, ask, do it, sum up."""
    from specctl.cli import acting
    from specctl.ops import lifecycle
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    names = ", ".join(f"{server.name} on {host.name}" for host, server in selected)
    if not as_json:
        typer.echo(f"{act.value}: {names}", err=not dry_run)
    elif dry_run:
        rows = [{"host": host.name, "server": server.name} for host, server in selected]
        typer.echo(json.dumps({"act": act.value, "servers": rows}, indent=2))
    if dry_run:
        return 0
    acting.confirm(yes=yes, as_json=as_json)
    screen = console(stderr=True)
    stop = threading.Event()
    with (
        Board(screen, mode_for(screen, json_asked=as_json), hosts=tuple(host.name for host, _ in selected)) as board,
        interruptible(stop, INTERRUPTED[act.value]),
    ):
        outcomes = lifecycle.run(selected, act, work, board, interrupted=stop, steal=steal)
    return acting.finish(outcomes, acting.Manner(as_json=as_json), shown=False)
