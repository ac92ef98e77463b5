"""What deploy, switch, rollback and restart have in common: show the plan, ask, act with a live view, sum up."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from specctl.cli.stopping import interruptible
from specctl.errors import SpecctlError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from specctl.fleet.types import Host, Server
    from specctl.ops.agent import Answer
    from specctl.ops.deploy import Request, Rollout
    from specctl.ops.gate import GateEnd
    from specctl.rollout.outcome import Outcome

TAKEN_BACK = "taking it back (Ctrl-C again leaves the hosts as they are)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a changing command behaves: asked or not, shown or done, as text or JSON."""

    yes: bool = False
    dry_run: bool = False
    as_json: bool = False
    diff: bool = False
    templates: tuple[Path, ...] = ()


def run(selected: Sequence[tuple[Host, Server]], request: Request, manner: Manner, make_ready: object = None) -> int:
    """Plan, show, ask, act; return the exit code."""
    from specctl.adapters.templates import Templates
    from specctl.ops import deploy
    from specctl.ops.prepare import prepare
    from specctl.ui.theme import console

    deploy.refuse_algo(selected, request.algo)
    templates = Templates(manner.templates)
    ready = make_ready if callable(make_ready) else prepare
    out = console()
    with deploy.rollout(selected, request, templates=templates, make_ready=ready) as rollout:
        if not (manner.as_json and not manner.dry_run):
            show_plan(rollout, manner, out)
        if manner.dry_run or not (rollout.plans or rollout.letters):
            return finish(rollout.planned(), manner, shown=manner.as_json and manner.dry_run)
        ask(rollout, manner)
        outcomes = act(rollout, manner)
    return finish(outcomes, manner, shown=False)


def show_plan(rollout: Rollout, manner: Manner, out: Console) -> None:
    """Print every server's plan, and what already failed."""
    if manner.as_json:
        rows = [one.plan.as_wire() for one in rollout.prepared]
        typer.echo(json.dumps({"plans": rows, "failed": [outcome.as_wire() for outcome in rollout.failed]}, indent=2))
        return
    from specctl.ops import live_plan
    from specctl.rollout.record import Act
    from specctl.ui import plan as plans

    width = out.width if out.is_terminal else None
    for one in rollout.prepared:
        name, live = one.server.profile.name, rollout.request.act is Act.SWITCH and live_plan.has_way(one)
        view = plans.view(one.plan, one.facts, one.host_facts, name, diff=manner.diff, live=live, width=width)
        out.print(view, soft_wrap=width is None)


def ask(rollout: Rollout, manner: Manner) -> None:
    """Wait for a yes; refuse to act without one where nobody can be asked."""
    from specctl.ui import plan as plans

    if manner.yes:
        return
    if manner.as_json or not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", hint="add --yes to act, or --dry-run to look")
    if not typer.confirm(plans.question([one.plan for one in (*rollout.plans, *rollout.letters)]), default=False):
        raise typer.Abort


def confirm(*, yes: bool, as_json: bool) -> None:
    """Wait for a yes to what was just said; refuse to act without one where nobody can be asked."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", hint="add --yes to act, or --dry-run to look")
    typer.confirm("Go ahead?", default=False, abort=True)


def answered(answers: Sequence[Answer], *, as_json: bool) -> int:
    """Print what failed of asking several agents, and return the exit code that it adds up to."""
    from specctl.cli.main import print_error
    from specctl.rollout.outcome import Outcome, exit_code

    for answer in answers:
        if answer.error is not None:
            print_error(answer.error, as_json=as_json)
    return exit_code([Outcome(host=answer.host, server=answer.server, error=answer.error) for answer in answers])


def act(rollout: Rollout, manner: Manner) -> tuple[Outcome, ...]:
    """Carry the rollout out under the live view."""
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    screen = console(stderr=True)
    hosts = tuple(one.plan.host for one in (*rollout.plans, *rollout.letters))
    with (
        Board(screen, mode_for(screen, json_asked=manner.as_json), hosts=hosts) as board,
        interruptible(rollout.interrupted, TAKEN_BACK),
    ):
        return rollout.carry_out(board)


def finish(outcomes: Sequence[Outcome], manner: Manner, *, shown: bool) -> int:
    """Print what came of it and return the exit code, which is the same when nobody reads the words."""
    from specctl.rollout.outcome import exit_code

    code = exit_code(outcomes)
    if not shown:
        with contextlib.suppress(BrokenPipeError):
            _tell(outcomes, code, as_json=manner.as_json)
    return code


def _tell(outcomes: Sequence[Outcome], code: int, *, as_json: bool) -> None:
    from specctl.cli.main import print_error
    from specctl.ops.deploy import undo_hint

    if as_json:
        typer.echo(json.dumps({"outcomes": [outcome.as_wire() for outcome in outcomes], "exit_code": code}, indent=2))
        return
    for outcome in outcomes:
        if outcome.error is not None:
            print_error(outcome.error, as_json=False)
        elif outcome.skipped is not None:
            typer.echo(f"skipped: {outcome.host}: {outcome.skipped}", err=True)
    hint = undo_hint(outcomes)
    if hint:
        typer.echo(hint)


def finish_health(ends: Mapping[tuple[str, str], GateEnd | SpecctlError], *, as_json: bool) -> int:
    """Print what `specctl health` found and return the exit code."""
    from specctl.cli.main import print_error
    from specctl.ops.gate import proof_text
    from specctl.ops.look import judged
    from specctl.rollout.outcome import Outcome, exit_code

    outcomes, rows = [], []
    for (host, server), end in ends.items():
        error = end if isinstance(end, SpecctlError) else judged(end, host)
        outcomes.append(Outcome(host=host, server=server, error=error))
        proof = None if isinstance(end, SpecctlError) else proof_text(end.proof)
        rows.append({"host": host, "server": server, "healthy": error is None, "proof": proof})
        if error is not None and not as_json:
            print_error(error, as_json=False)
        elif not as_json:
            typer.echo(f"{host}  {server}  healthy: {proof}")
    code = exit_code(outcomes)
    if as_json:
        found = [
            {**row, "error": o.error.as_json() if o.error else None} for row, o in zip(rows, outcomes, strict=True)
        ]
        typer.echo(json.dumps({"health": found, "exit_code": code}, indent=2))
    return code
