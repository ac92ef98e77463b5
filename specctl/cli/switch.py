"""`specctl switch`: another algo of a deployed release, by a start or, with --live, by a word to the running engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.cli.deploy import CANARY, DIFF, FORCE, REASON
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.cli.acting import Manner
    from specctl.ops.live_plan import Wish
    from specctl.ops.live_switch import Tellings

TOLD_BACK = "telling the engine what it ran before (Ctrl-C again leaves it as it is)"
LIVE = Annotated[
    bool,
    typer.Option("--live", help="Tell the running engine, where it takes that: nothing is started, nothing is lost."),
]
KNOB = Annotated[
    list[str] | None,
    typer.Option("--knob", help="With --live: a knob of the algo, NAME=NUMBER (repeatable).", metavar="K=N"),
]


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("switch")(switch)


@options.selecting()
def switch(
    chosen: options.Chosen,
    algo: Annotated[str, typer.Option("--algo", help="none, dflash or ddtree.", metavar="ALGO")],
    live: LIVE = False,
    knob: KNOB = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    diff: DIFF = False,
    force: FORCE = False,
    canary: CANARY = False,
    steal_lock: options.STEAL = False,
    reason: REASON = None,
    skip_check: options.SKIP = None,
    as_json: options.JSON = False,
) -> int:
    """Change the algo of a deployed release; nothing else of the inventory is touched."""
    from specctl.cli import acting
    from specctl.ops.deploy import Request
    from specctl.ops.live_plan import Wish
    from specctl.ops.preflight import skips
    from specctl.ops.stored import prepare_switch
    from specctl.rollout.record import Act

    manner = acting.Manner(yes=yes, dry_run=dry_run, as_json=as_json, diff=diff)
    if live:
        if diff or skip_check:
            words = f"--live writes no unit and checks no start: {'--diff' if diff else '--skip-check'} has no meaning"
            raise UsageError(words, hint="leave it out")
        knobs = options.knobs(knob)
        wish = Wish(algo=algo, knobs=knobs, force=force, canary=canary, steal=steal_lock, reason=reason)
        return _live(chosen, wish, manner)
    if knob:
        raise UsageError("--knob goes with --live: a release's knobs are set by a deploy", hint="specctl deploy --knob")
    request = Request(
        act=Act.SWITCH,
        algo=algo,
        force=force,
        canary=canary,
        steal=steal_lock,
        reason=reason,
        skipped=skips(skip_check, reason),
    )
    return acting.run(chosen.pairs(), request, manner, prepare_switch)


def _live(chosen: options.Chosen, wish: Wish, manner: Manner) -> int:
    """Plan, show, ask, tell; return the exit code."""
    from specctl.cli import acting
    from specctl.cli.stopping import interruptible
    from specctl.ops import deploy, live_switch
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    selected = chosen.pairs()
    deploy.refuse_algo(selected, wish.algo)
    screen = console(stderr=True)
    with live_switch.tellings(selected, wish) as found:
        _show(found, manner)
        if manner.dry_run or not found.todo:
            return acting.finish(found.planned_only(), manner, shown=manner.as_json and manner.dry_run)
        acting.confirm(yes=manner.yes, as_json=manner.as_json)
        hosts = tuple(one.contact.host.name for one in found.todo)
        with (
            Board(screen, mode_for(screen, json_asked=manner.as_json), hosts=hosts) as board,
            interruptible(found.interrupted, TOLD_BACK),
        ):
            outcomes = found.carry_out(board)
        hint = live_switch.undo_hint(found.planned, outcomes)
    code = acting.finish(outcomes, manner, shown=False)
    if hint and not manner.as_json:
        typer.echo(hint)
    return code


def _show(found: Tellings, manner: Manner) -> None:
    """Print every server's plan."""
    from specctl.ui import live_plan
    from specctl.ui.theme import console

    if manner.as_json:
        if manner.dry_run:
            rows = [one.plan.as_wire() for one in found.planned]
            failed = [outcome.as_wire() for outcome in found.failed]
            typer.echo(json.dumps({"plans": rows, "failed": failed}, indent=2))
        return
    out = console()
    width = out.width if out.is_terminal else None
    for one in found.planned:
        out.print(live_plan.view(one.plan, one.server.profile.name, width), soft_wrap=width is None)
