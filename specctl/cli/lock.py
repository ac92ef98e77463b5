"""`specctl lock`: see, take or release the lease on a server by hand, for work that specctl must not disturb."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from specctl.cli import options

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("status")
@options.selecting()
def status(
    chosen: options.Chosen,
    as_json: options.JSON = False,
) -> int:
    """Say who holds each selected server."""
    from specctl.ops import lease

    rows = lease.statuses(chosen.pairs())
    return _show(rows, as_json=as_json)


@app.command("acquire")
@options.selecting()
def acquire(
    chosen: options.Chosen,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever meets the lock.")],
    steal: Annotated[bool, typer.Option("--steal", help="Take it from whoever holds it.")] = False,
    as_json: options.JSON = False,
) -> int:
    """Lock servers until `specctl lock release`; survives a reboot of the host."""
    from specctl.ops import lease

    selected = chosen.pairs()
    return _show(lease.acquire(selected, reason, steal=steal), as_json=as_json)


@app.command("release")
@options.selecting()
def release(
    chosen: options.Chosen,
    as_json: options.JSON = False,
) -> int:
    """Release the lock of servers, whoever took it."""
    from specctl.ops import lease

    return _show(lease.release(chosen.pairs()), as_json=as_json)


def _show(rows: list[dict[str, object]], *, as_json: bool) -> int:
    """Print one row a server; return the exit code that the failures add up to."""
    from specctl.rollout.outcome import summed

    codes = [code for row in rows if isinstance(code := row.get("exit_code"), int)]
    if as_json:
        typer.echo(json.dumps({"locks": rows}, indent=2))
    else:
        for row in rows:
            typer.echo(f"{row['host']}  {row['server']}  {row['text']}")
    return summed(codes, of=len(rows))
