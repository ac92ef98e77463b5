"""Options that many commands share, so that they are spelled and explained once, and what turns them into hosts and servers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.fleet.overrides import Overrides
    from specctl.fleet.select import Selection
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
YES = Annotated[bool, typer.Option("--yes", "-y", help="Act without asking.")]
DRY_RUN = Annotated[bool, typer.Option("--dry-run", "-n", help="Show what would be done, and stop.")]
STEAL = Annotated[bool, typer.Option("--steal-lock", help="Take the lease from whoever holds it.")]
SKIP = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-check",
        help="Pass over a check that fails; the reason is kept in the record (repeatable).",
        metavar="ID[=REASON]",
    ),
]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a command's selecting options say; nothing is read before it is asked for.

    `by_host_only`: it has neither --group nor --all.
    """

    inventory: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    every: bool = False
    by_host_only: bool = False

    @property
    def given(self) -> bool:
        """Claim that the command line names hosts, groups or all."""
        return bool(self.hosts or self.groups or self.every)

    @property
    def _selection(self) -> Selection:
        from specctl.fleet.select import Selection

        return Selection(
            hosts=self.hosts,
            groups=self.groups,
            excludes=self.excludes,
            servers=self.servers,
            everything=self.every,
            by_host_only=self.by_host_only,
        )

    def host(self) -> Host:
        """Return the one host that is chosen, with or without servers; raises UsageError where there are more."""
        from specctl.fleet.select import select_hosts
        from specctl.ops import inventory as inventories

        hosts = select_hosts(inventories.load_fleet(self.inventory), self._selection)
        if len(hosts) > 1:
            names = ", ".join(host.name for host in hosts)
            raise UsageError(
                f"this command takes one host, and {len(hosts)} are selected: {names}", hint="name it: --host H"
            )
        return hosts[0]

    def pairs(self, overrides: Overrides | None = None, *, every: bool = False) -> tuple[tuple[Host, Server], ...]:
        """Return the servers that are chosen, the command line's values laid over them; `every`: all of the inventory."""
        from specctl.ops import inventory as inventories

        selection = replace(self._selection, everything=self.every or every)
        return inventories.load_selected(self.inventory, selection, overrides)


SELECTORS: Mapping[str, tuple[object, object]] = {
    "inventory": (INVENTORY, None),
    "host": (HOSTS, None),
    "group": (GROUPS, None),
    "exclude": (EXCLUDE, None),
    "server": (SERVERS, None),
    "every": (ALL, False),
}


def selecting(*without: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command whose first parameter is `chosen: Chosen` the options that choose servers, all but those named.

    Typer reads a function's signature: the command returned shows the selecting options in the place of `chosen`.
    """
    shown = {name: pair for name, pair in SELECTORS.items() if name not in without}
    return lambda command: _with_options(command, shown)


def _with_options(command: Callable[..., object], shown: Mapping[str, tuple[object, object]]) -> Callable[..., object]:
    own = list(inspect.signature(command).parameters.values())[1:]
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in shown.items()
    ]
    hints = {**get_type_hints(command, include_extras=True), **{name: pair[0] for name, pair in shown.items()}}

    def run(**values: object) -> object:
        given = {name: values.pop(name, SELECTORS[name][1]) for name in SELECTORS if name in shown}
        chosen = Chosen(
            inventory=_texts(given.get("inventory")),
            hosts=_texts(given.get("host")),
            groups=_texts(given.get("group")),
            excludes=_texts(given.get("exclude")),
            servers=_texts(given.get("server")),
            every=given.get("every") is True,
            by_host_only=not shown.keys() & {"group", "every"},
        )
        return command(chosen, **values)

    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__annotations__ = {name: hint for name, hint in hints.items() if name != "chosen"}
    kept = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name]) for each in own]
    run.__signature__ = inspect.Signature([*parameters, *kept])  # type: ignore[attr-defined]  # functions take one
    return run


def _texts(given: object) -> tuple[str, ...]:
    return tuple(str(text) for text in given) if isinstance(given, (list, tuple)) else ()


def one(selected: Sequence[tuple[Host, Server]]) -> tuple[Host, Server]:
    """Return the one server that is selected, or raise UsageError: a command that shows one thing cannot show two."""
    if len(selected) == 1:
        return selected[0]
    names = ", ".join(f"{server.name} on {host.name}" for host, server in selected)
    raise UsageError(
        f"this command takes one server, and {len(selected)} are selected: {names}", hint="name it: --host H --server S"
    )
