"""`specctl lock`: see, take or release the lease on a server by hand, for work that specctl must not disturb."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from specctl.cli import options

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("status")
def status(
    inventory: options.INVENTORY = None,
    host: options.HOSTS = None,
    group: options.GROUPS = None,
    exclude: options.EXCLUDE = None,
    server: options.SERVERS = None,
    every: options.ALL = False,
    as_json: options.JSON = False,
) -> int:
    """Say who holds each selected server."""
    from specctl.ops import lease

    rows = lease.statuses(options.selection(inventory, host, group, exclude, server, every=every))
    return _show(rows, as_json=as_json)


@app.command("acquire")
def acquire(
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever meets the lock.")],
    inventory: options.INVENTORY = None,
    host: options.HOSTS = None,
    group: options.GROUPS = None,
    exclude: options.EXCLUDE = None,
    server: options.SERVERS = None,
    every: options.ALL = False,
    steal: Annotated[bool, typer.Option("--steal", help="Take it from whoever holds it.")] = False,
    as_json: options.JSON = False,
) -> int:
    """Lock servers until `specctl lock release`; survives a reboot of the host."""
    from specctl.ops import lease

    selected = options.selection(inventory, host, group, exclude, server, every=every)
    return _show(lease.acquire(selected, reason, steal=steal), as_json=as_json)


@app.command("release")
def release(
    inventory: options.INVENTORY = None,
    host: options.HOSTS = None,
    group: options.GROUPS = None,
    exclude: options.EXCLUDE = None,
    server: options.SERVERS = None,
    every: options.ALL = False,
    as_json: options.JSON = False,
) -> int:
    """Release the lock of servers, whoever took it."""
    from specctl.ops import lease

    return _show(
        lease.release(options.selection(inventory, host, group, exclude, server, every=every)), as_json=as_json
    )


def _show(rows: list[dict[str, object]], *, as_json: bool) -> int:
    """Print one row a server; return the exit code of the first that failed."""
    codes = [code for row in rows if isinstance(code := row.get("exit_code"), int)]
    if as_json:
        typer.echo(json.dumps({"locks": rows}, indent=2))
    else:
        for row in rows:
            typer.echo(f"{row['host']}  {row['server']}  {row['text']}")
    return codes[0] if codes else 0
