"""`specctl inventory`: check, list, show, schema; and `specctl init`, which writes an inventory to begin with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.cli.printed import listing
from specctl.errors import EXIT_OK, InventoryError

if TYPE_CHECKING:
    pass

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def mount(parent: typer.Typer) -> None:
    """Add the commands that stand beside the group."""
    parent.command("init")(init)


@app.command("check")
def check(inventory: options.INVENTORY = None, as_json: options.JSON = False) -> int:
    """Hold every file against everything it should be; all problems at once."""
    from specctl.ops import inventory as inventories

    try:
        fleet = inventories.load_fleet(inventory or ())
    except InventoryError as error:
        if not as_json:
            raise
        typer.echo(json.dumps({"sound": False, **error.as_json()}, indent=2))
        return error.exit_code
    servers = sum(len(host.servers) for host in fleet.hosts)
    if as_json:
        counts = {
            "sound": True,
            "files": list(fleet.files),
            "hosts": len(fleet.hosts),
            "servers": servers,
            "problems": [],
        }
        typer.echo(json.dumps(counts, indent=2))
    else:
        typer.echo(
            f"{', '.join(fleet.files)}: sound · {_count(len(fleet.hosts), 'host')} · {_count(servers, 'server')}"
        )
    return EXIT_OK


@app.command("list")
def list_servers(
    inventory: options.INVENTORY = None,
    host: options.HOSTS = None,
    group: options.GROUPS = None,
    exclude: options.EXCLUDE = None,
    as_json: options.JSON = False,
) -> int:
    """Show every host with its servers, or the hosts that are selected."""
    from specctl.fleet import wire
    from specctl.fleet.select import Selection, select_hosts
    from specctl.ops import inventory as inventories

    fleet = inventories.load_fleet(inventory or ())
    some = bool(host or group)
    chosen = Selection(
        hosts=tuple(host or ()), groups=tuple(group or ()), excludes=tuple(exclude or ()), everything=not some
    )
    hosts = select_hosts(fleet, chosen)
    if as_json:
        rows = [{**wire.host_values(one), "servers": [wire.server_values(s) for s in one.servers]} for one in hosts]
        typer.echo(json.dumps({"hosts": rows}, indent=2))
        return EXIT_OK
    from specctl.ui.inventory import fleet_table

    screen = listing()
    screen.print(fleet_table(hosts, width=screen.width))
    return EXIT_OK


@app.command("show")
def show(
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The host to show.")],
    inventory: options.INVENTORY = None,
    server: options.SERVERS = None,
    provenance: Annotated[bool, typer.Option("--provenance", help="Say where each value came from.")] = False,
    as_json: options.JSON = False,
) -> int:
    """Show what holds for one host and its servers after all layers."""
    from specctl.fleet.select import Selection, select, select_hosts
    from specctl.ops import inventory as inventories

    fleet = inventories.load_fleet(inventory or ())
    chosen = Selection(hosts=(host,), servers=tuple(server or ()))
    hosts = select_hosts(fleet, chosen)
    pairs = select(fleet, chosen) if server else tuple((one, each) for one in hosts for each in one.servers)
    if as_json:
        from specctl.fleet import wire

        rows = []
        for one in hosts:
            mine = [
                {**wire.server_values(each), "provenance": wire.origin_values(each.provenance)}
                for owner, each in pairs
                if owner is one
            ]
            rows.append({**wire.host_values(one), "provenance": wire.origin_values(one.provenance), "servers": mine})
        typer.echo(json.dumps({"hosts": rows}, indent=2))
        return EXIT_OK
    from specctl.ui.inventory import host_view

    screen = listing()
    for one in hosts:
        screen.print(host_view(one, [each for owner, each in pairs if owner is one], provenance=provenance))
    return EXIT_OK


@app.command("schema")
def schema() -> int:
    """Print the JSON schema of an inventory file, for editors."""
    from specctl.fleet.schema_json import schema_text

    typer.echo(schema_text(), nl=False)
    return EXIT_OK


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Where to write it.")] = Path("inventory.yaml"),
    lab: Annotated[bool, typer.Option("--lab", help="One that works at once: the lab engine on this machine.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> int:
    """Write a commented inventory to begin with."""
    from specctl.ops import inventory as inventories

    inventories.write_starter(path, lab=lab, force=force)
    after = f"edit it, then specctl inventory check -i {path}"
    if lab:
        after = f"export LAB_API_KEY=$(openssl rand -hex 24), then specctl deploy -i {path} --host local"
    typer.echo(f"wrote {path}: {after}")
    return EXIT_OK


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
