"""The commands that look at a host before anything is done to it: facts, preflight."""

from __future__ import annotations

import json
from collections.abc import Mapping

import typer

from specctl.cli import options
from specctl.cli.deploy import ALGO, KNOB
from specctl.cli.printed import is_folded, listing
from specctl.errors import SpecctlError


def mount(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command("facts")(facts)
    app.command("preflight")(preflight)


@options.selecting()
def facts(chosen: options.Chosen, as_json: options.JSON = False) -> int:
    """Show what hosts are and have: machine, GPUs and their links, engine, models; what is not known is —."""
    from specctl.cli.main import print_error
    from specctl.ops import preflight as checks
    from specctl.rollout.outcome import Outcome, exit_code
    from specctl.ui import facts as views

    found = checks.facts(chosen.pairs())
    errors = {name: value for name, value in found.items() if isinstance(value, SpecctlError)}
    known = [value for value in found.values() if not isinstance(value, SpecctlError)]
    for error in errors.values():
        print_error(error, as_json=as_json)
    code = exit_code([Outcome(host=name, error=errors.get(name)) for name in found])
    if as_json:
        typer.echo(json.dumps({"hosts": [one.as_wire() for one in known], "exit_code": code}, indent=2))
        return code
    out = listing()
    for one in known:
        out.print(views.view(one, out.width), soft_wrap=not is_folded())
    return code


@options.selecting()
def preflight(
    chosen: options.Chosen,
    algo: ALGO = None,
    knob: KNOB = None,
    skip_check: options.SKIP = None,
    as_json: options.JSON = False,
) -> int:
    """Check whether a deploy could work, and change nothing: exit 2 when a check fails."""
    from specctl.ops import deploy
    from specctl.ops import inventory as fleets
    from specctl.ops import preflight as checks
    from specctl.rollout.outcome import Outcome, exit_code

    selected = chosen.pairs(fleets.Overrides(algo=algo, knobs=options.knobs(knob)))
    deploy.refuse_algo(selected, algo)
    found = checks.preflight(selected, algo, checks.skips(skip_check, None))
    ends = {pair: checks.judged(pair[0], value) for pair, value in found.items()}
    code = exit_code([Outcome(host=host, server=server, error=error) for (host, server), error in ends.items()])
    if as_json:
        typer.echo(json.dumps({"preflight": checks.as_wire(found), "exit_code": code}, indent=2))
        return code
    show(found, ends)
    return code


def show(found: Mapping[tuple[str, str], object], ends: Mapping[tuple[str, str], SpecctlError | None]) -> None:
    """Print every server's checks, then what would be refused or could not be asked."""
    from specctl.cli.main import print_error
    from specctl.rollout.preflight.types import Report
    from specctl.ui import checks as views
    from specctl.ui.theme import console

    out = console()
    width = out.width if out.is_terminal else None
    for (host, server), value in found.items():
        if isinstance(value, Report):
            out.print(views.view(host, server, value, width=width), soft_wrap=width is None)
    for error in ends.values():
        if error is not None:
            print_error(error, as_json=False)
