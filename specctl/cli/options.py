"""Options that many commands share, so that they are spelled and explained once, and what turns them into hosts and servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.fleet.overrides import Overrides
    from specctl.fleet.types import Host, Server

INVENTORY = Annotated[
    list[str] | None,
    typer.Option(
        "--inventory",
        "-i",
        metavar="PATH",
        help="An inventory file (repeatable); else $SPECCTL_INVENTORY (colons between), ./inventory.yaml, "
        "./inventory/inventory.yaml.",
    ),
]
HOSTS = Annotated[list[str] | None, typer.Option("--host", metavar="PATTERN", help="A host or a glob (repeatable).")]
GROUPS = Annotated[
    list[str] | None, typer.Option("--group", metavar="PATTERN", help="All hosts of a group (repeatable, globs work).")
]
EXCLUDE = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="PATTERN", help="Hosts to leave out (repeatable, globs work).")
]
SERVERS = Annotated[
    list[str] | None, typer.Option("--server", metavar="PATTERN", help="Only these servers of the hosts (repeatable).")
]
ALL = Annotated[bool, typer.Option("--all", help="Every host of the inventory.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON (docs/json.md).")]


def knobs(given: Sequence[str] | None) -> Mapping[str, int]:
    """Read NAME=NUMBER pairs."""
    found: dict[str, int] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name or not value.isdecimal() or len(value) > 9:
            raise UsageError(f"--knob {text} is not NAME=NUMBER", hint="--knob tree_budget=16")
        if name in found:
            raise UsageError(f"--knob {name} is given twice")
        found[name] = int(value)
    return found


def selection(
    inventory: Sequence[str] | None,
    host: Sequence[str] | None,
    group: Sequence[str] | None,
    exclude: Sequence[str] | None,
    server: Sequence[str] | None,
    *,
    every: bool = False,
    overrides: Overrides | None = None,
) -> tuple[tuple[Host, Server], ...]:
    """Return the servers that the options choose, the command line's values laid over them."""
    from specctl.fleet.select import Selection
    from specctl.ops import inventory as inventories

    chosen = Selection(
        hosts=tuple(host or ()),
        groups=tuple(group or ()),
        excludes=tuple(exclude or ()),
        servers=tuple(server or ()),
        everything=every,
    )
    return inventories.load_selected(tuple(inventory or ()), chosen, overrides)


def one(selected: Sequence[tuple[Host, Server]]) -> tuple[Host, Server]:
    """Return the one server that is selected, or raise UsageError: a command that shows one thing cannot show two."""
    if len(selected) == 1:
        return selected[0]
    names = ", ".join(f"{server.name} on {host.name}" for host, server in selected)
    raise UsageError(
        f"this command takes one server, and {len(selected)} are selected: {names}", hint="name it: --host H --server S"
    )
