"""`specctl lint`: what the inventory's servers say that their engines and machines would not take as it was meant."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from specctl.cli import options
from specctl.cli.printed import is_folded, listing
from specctl.errors import EXIT_OK, EXIT_USAGE

STRICT = Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")]
RULES = Annotated[bool, typer.Option("--rules", help="List the rules and leave.")]


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("lint")(lint)


@options.selecting()
def lint(
    chosen: options.Chosen,
    strict: STRICT = False,
    rules: RULES = False,
    as_json: options.JSON = False,
) -> int:
    """Hold servers against what is known of their engines and machines; without a selection, all. No host is reached."""
    from specctl.ops import lint as linter

    if rules:
        return _list_rules(as_json=as_json)
    everything = chosen.every or not chosen.given
    selected = chosen.pairs(every=everything)
    findings = linter.lint(selected, whole=everything and not chosen.excludes and not chosen.servers)
    failed = any(one.is_error or (strict and one.is_warning) for one in findings)
    if as_json:
        shown = {
            "sound": not failed,
            "servers": [{"host": one.name, "server": each.name} for one, each in selected],
            "findings": [one.as_json() for one in findings],
        }
        typer.echo(json.dumps(shown, indent=2))
    else:
        from specctl.ui import lint as views

        out = listing()
        out.print(views.view(selected, findings, width=out.width if is_folded() else None))
    return EXIT_USAGE if failed else EXIT_OK


def _list_rules(*, as_json: bool) -> int:
    """Print every rule by its id."""
    from specctl.lint.catalogue import by_id

    found = by_id().values()
    if as_json:
        rows = [
            {
                "id": one.id,
                "severity": one.severity.value,
                "title": one.title,
                "reason": one.reason,
                "remedy": one.remedy,
            }
            for one in found
        ]
        typer.echo(json.dumps({"rules": rows}, indent=2))
    else:
        for one in found:
            typer.echo(f"{one.id}  {one.severity.value:<7}  {one.title}")
    return EXIT_OK
