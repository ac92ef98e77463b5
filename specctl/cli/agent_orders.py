"""What people tell the agents on hosts, and ask of them: `agent mode|hold|resume`, `pin`, `unpin`, `why`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.control import wire

REASON = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever meets it.")]


@dataclass(frozen=True, slots=True)
class _Order:
    """What is told to each server's agent: in words, and as the request that somebody (`who`) makes for a server."""

    said: str
    make: Callable[[str, str], wire.Request]


def mount(root: typer.Typer, group: typer.Typer) -> None:
    """Add the commands to the app and to its group `agent`."""
    group.command("mode")(mode)
    group.command("hold")(hold)
    group.command("resume")(resume)
    root.command("why")(why)
    root.command("pin")(pin)
    root.command("unpin")(unpin)


@options.selecting()
def mode(
    chosen: options.Chosen,
    wanted: Annotated[
        str, typer.Argument(metavar="MODE", help="observe, advise or act; inventory: what the inventory says.")
    ],
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Say how far agents may go, until the next `mode inventory`."""
    from specctl.control import wire
    from specctl.fleet.types import AgentMode

    if wanted not in (*(each.value for each in AgentMode), "inventory"):
        raise UsageError(f"{wanted} is no mode", hint="observe, advise, act or inventory")
    conduct = None if wanted == "inventory" else AgentMode(wanted)
    said = f"mode {wanted}"
    order = _Order(said, lambda who, server: wire.SetConduct(who=who, server=server, conduct=conduct))
    return _order(chosen, order, yes=yes, dry_run=dry_run, as_json=as_json)


@options.selecting()
def hold(
    chosen: options.Chosen,
    reason: REASON,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Let agents act on nothing until `specctl agent resume`."""
    from specctl.control import wire

    order = _Order("hold", lambda who, server: wire.Hold(who=who, server=server, reason=reason))
    return _order(chosen, order, yes=yes, dry_run=dry_run, as_json=as_json)


@options.selecting()
def resume(
    chosen: options.Chosen, yes: options.YES = False, dry_run: options.DRY_RUN = False, as_json: options.JSON = False
) -> int:
    """End a hold, and a freeze that followed a switch whose gain did not show."""
    from specctl.control import wire

    order = _Order("resume", lambda who, server: wire.Resume(who=who, server=server))
    return _order(chosen, order, yes=yes, dry_run=dry_run, as_json=as_json)


@options.selecting()
def pin(
    chosen: options.Chosen,
    algo: Annotated[str, typer.Option("--algo", metavar="ALGO", help="none, dflash or ddtree.")],
    reason: REASON,
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 90s, 8m, 6h, 2d; at most 30d.")],
    knob: Annotated[list[str] | None, typer.Option("--knob", metavar="K=N", help="A knob of it (repeatable).")] = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Keep an algo for a while, whatever the agent would decide."""
    from specctl.control import mode as modes
    from specctl.control import wire

    for_s = _seconds(duration)
    try:
        wanted = modes.mode(algo, options.knobs(knob))
    except ValueError as error:
        raise UsageError(str(error), hint="specctl pin --host H --algo dflash --for 6h --reason TEXT") from error
    said = f"pin {wanted} for {duration}"
    order = _Order(said, lambda who, server: wire.Pin(who=who, server=server, mode=wanted, for_s=for_s, reason=reason))
    return _order(chosen, order, yes=yes, dry_run=dry_run, as_json=as_json)


def _seconds(duration: str) -> float:
    """Read how long a pin is to last; raises UsageError."""
    from specctl.fleet import units

    try:
        found = units.seconds(duration)
    except ValueError as error:
        raise UsageError(f"--for {duration}: {error}", hint="--for 6h") from error
    if found < 1.0:
        raise UsageError(f"--for {duration}: must be at least 1s", hint="specctl unpin ends a pin")
    return found


@options.selecting()
def unpin(
    chosen: options.Chosen, yes: options.YES = False, dry_run: options.DRY_RUN = False, as_json: options.JSON = False
) -> int:
    """End a pin: the agent decides again."""
    from specctl.control import wire

    order = _Order("unpin", lambda who, server: wire.Unpin(who=who, server=server))
    return _order(chosen, order, yes=yes, dry_run=dry_run, as_json=as_json)


@options.selecting()
def why(
    chosen: options.Chosen,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="The newest so many.")] = 1,
    as_json: options.JSON = False,
) -> int:
    """Say why the agent decided as it did: what it saw, by which rule, and what would have had to differ."""
    from specctl.cli import acting
    from specctl.ops import agent as agents

    answers = agents.why(chosen.pairs(), limit)
    if as_json:
        typer.echo(
            json.dumps({"decisions": [answer.as_wire() for answer in answers if answer.error is None]}, indent=2)
        )
    else:
        from specctl.ui import agent as views
        from specctl.ui.theme import console

        out = console()
        for answer in (one for one in answers if one.error is None):
            for line in views.answer_lines(answer.host, answer.server, answer.result):
                out.print(line, soft_wrap=True)
    return acting.answered(answers, as_json=as_json)


def _order(chosen: options.Chosen, order: _Order, *, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Say what will be told to whom, ask, tell them, and say what each of them answered."""
    from specctl.cli import acting
    from specctl.control import wire
    from specctl.ops import agent as agents

    pairs = chosen.pairs()
    # What every agent would refuse is refused here, once, and before anybody is asked.
    wire.decode(wire.encode(order.make("somebody", pairs[0][1].name)))
    names = ", ".join(f"{server.name} on {host.name}" for host, server in pairs)
    if not as_json:
        typer.echo(f"{order.said}: {names}", err=not dry_run)
    elif dry_run:
        rows = [{"host": host.name, "server": server.name} for host, server in pairs]
        typer.echo(json.dumps({"order": order.said, "servers": rows}, indent=2))
    if dry_run:
        return 0
    acting.confirm(yes=yes, as_json=as_json)
    answers = agents.tell(pairs, order.make)
    if as_json:
        typer.echo(json.dumps({"answers": [answer.as_wire() for answer in answers]}, indent=2))
    else:
        for answer in answers:
            if answer.error is None:
                typer.echo(f"{answer.host}  {answer.server}  {answer.result.get('said', 'done')}")
    return acting.answered(answers, as_json=as_json)
