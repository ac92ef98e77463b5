"""`specctl agent`: bring the agent to hosts, look after it, take it off; what it is told and asked is in agent_orders.py."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import agent_orders, options
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.fleet.types import Host
    from specctl.ops.agent_install import Installation, Request

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

WHEELHOUSE = Annotated[
    Path | None, typer.Option("--wheelhouse", metavar="FOLDER", help="Take the wheels from here instead of an index.")
]
METRICS = Annotated[
    str | None,
    typer.Option("--metrics", metavar="ADDRESS:PORT", help="Where the agent serves its metrics (127.0.0.1:9469)."),
]
TEMPLATES = Annotated[
    list[Path] | None, typer.Option("--templates", help="A folder of templates that come before the shipped ones.")
]


def mount(root: typer.Typer) -> None:
    """Add the group and the commands that stand beside it."""
    root.add_typer(app, name="agent", help="Install, watch and steer the agent on hosts.")
    agent_orders.mount(root, app)


@app.command("install")
@options.selecting("server")
def install(
    chosen: options.Chosen,
    wheelhouse: WHEELHOUSE = None,
    metrics: METRICS = None,
    templates: TEMPLATES = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Bring the agent to hosts, or another version or other settings of it; nothing is fetched on the host."""
    from specctl.ops.agent_install import Request

    asked = Request(wheelhouse=wheelhouse, metrics=metrics)
    return _install(chosen, asked, tuple(templates or ()), yes=yes, dry_run=dry_run, as_json=as_json)


@app.command("upgrade")
@options.selecting("server")
def upgrade(
    chosen: options.Chosen,
    wheelhouse: WHEELHOUSE = None,
    metrics: METRICS = None,
    templates: TEMPLATES = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Put this specctl's version in the place of the agent that is there; one that does not start gives way to the old one."""
    from specctl.ops.agent_install import Request

    asked = Request(wheelhouse=wheelhouse, metrics=metrics, upgrade=True)
    return _install(chosen, asked, tuple(templates or ()), yes=yes, dry_run=dry_run, as_json=as_json)


@app.command("remove")
@options.selecting("server")
def remove(
    chosen: options.Chosen,
    purge: Annotated[bool, typer.Option("--purge", help="Its profile, decisions and user too.")] = False,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Stop the agent and take it off hosts; servers go on as they are."""
    from specctl.cli import acting
    from specctl.ops import agent_install

    hosts = _hosts(chosen)
    names = ", ".join(host.name for host in hosts)
    if not as_json:
        typer.echo(f"remove the agent{', and all that it knows,' if purge else ''} from {names}", err=not dry_run)
    elif dry_run:
        typer.echo(json.dumps({"remove": [host.name for host in hosts], "purge": purge}, indent=2))
    if dry_run:
        return 0
    acting.confirm(yes=yes, as_json=as_json)

    def told(host: str, removed: tuple[str, ...]) -> None:
        if not as_json:
            typer.echo(f"{host}  {'removed' if removed else 'no agent was there'}")

    outcomes = agent_install.remove(hosts, purge=purge, told=told)
    return acting.finish(outcomes, acting.Manner(as_json=as_json), shown=False)


@app.command("status")
@options.selecting("server")
def status(chosen: options.Chosen, as_json: options.JSON = False) -> None:
    """Show the agent of every host: what it sees, what it decided, what it may do."""
    from specctl.ops import agent as agents

    rows = agents.status(_hosts(chosen))
    if as_json:
        typer.echo(json.dumps({"agents": [row.as_wire() for row in rows]}, indent=2))
        return
    from specctl.cli.main import print_error
    from specctl.cli.printed import listing
    from specctl.ui import agent as views

    out = listing()
    out.print(views.table(rows, out.width))
    for line in views.trouble_lines(rows):
        out.print(line, soft_wrap=True)
    for row in rows:
        if row.error is not None:
            print_error(row.error, as_json=False)


@app.command("logs")
@options.selecting("group", "exclude", "server", "every")
def logs(
    chosen: options.Chosen,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, metavar="N", help="The last so many.")
    ] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
) -> None:
    """Show the agent's log on one host."""
    from specctl.ops import agent as agents
    from specctl.ui.text import plain

    hosts = _hosts(chosen)
    if len(hosts) != 1:
        raise UsageError(f"this command takes one host, and {len(hosts)} are selected", hint="name it: --host H")
    done = threading.Event()
    try:
        agents.logs(hosts[0], lines=lines, follow=follow, show=lambda line: typer.echo(plain(line)), done=done)
    except KeyboardInterrupt:
        done.set()


def _hosts(chosen: options.Chosen) -> tuple[Host, ...]:
    """Return the hosts that are chosen, each once."""
    return tuple({host.name: host for host, _ in chosen.pairs()}.values())


def _install(
    chosen: options.Chosen, asked: Request, templates: tuple[Path, ...], *, yes: bool, dry_run: bool, as_json: bool
) -> int:
    """Look, show, ask, install, sum up."""
    from specctl.adapters.templates import Templates
    from specctl.cli import acting
    from specctl.ops.agent_install import installation
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    manner = acting.Manner(yes=yes, dry_run=dry_run, as_json=as_json)
    with installation(_hosts(chosen), asked, Templates(templates)) as work:
        if dry_run or not as_json:
            _show(work, as_json=as_json)
        if dry_run or not work.to_do:
            return acting.finish(work.planned(), manner, shown=as_json and dry_run)
        acting.confirm(yes=yes, as_json=as_json)
        screen = console(stderr=True)
        names = tuple(one.plan.host for one in work.to_do)
        with Board(screen, mode_for(screen, json_asked=as_json), hosts=names) as board:
            outcomes = work.carry_out(board)
    return acting.finish(outcomes, manner, shown=False)


def _show(work: Installation, *, as_json: bool) -> None:
    """Print every host's plan."""
    if as_json:
        failed = [outcome.as_wire() for outcome in work.failed]
        rows = [one.plan.as_wire() for one in work.prepared]
        typer.echo(json.dumps({"plans": rows, "failed": failed}, indent=2))
        return
    from specctl.ui import agent as views
    from specctl.ui.theme import console

    out = console()
    for one in work.prepared:
        for line in views.plan_lines(one.plan):
            out.print(line, soft_wrap=True)
