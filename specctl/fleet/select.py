"""Choose hosts and servers by pattern: pure, in the inventory's order, each once; a pattern that chooses nothing is an error."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from specctl.errors import UsageError
from specctl.fleet.suggest import listed, nearest
from specctl.fleet.types import Fleet, Host, Server

LIST_HINT = "specctl inventory list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the command line asks for: hosts and groups add up, excludes take hosts away, servers narrow what is left.

    `by_host_only`: the command has no --group and no --all to be pointed at.
    """

    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    everything: bool = False
    by_host_only: bool = False


def select(fleet: Fleet, selection: Selection) -> tuple[tuple[Host, Server], ...]:
    """Return the chosen servers with their hosts; raise UsageError where a pattern, or all of them together, choose nothing."""
    hosts = select_hosts(fleet, selection)
    names = tuple(dict.fromkeys(server.name for host in hosts for server in host.servers))
    for pattern in selection.servers:
        _demand(pattern, names, "server", "on the selected hosts")
    pairs = tuple(
        (host, server)
        for host in hosts
        for server in host.servers
        if not selection.servers or _matches(server.name, selection.servers)
    )
    if not pairs:
        words = listed(host.name for host in hosts)
        raise UsageError(f"no server is placed on {words}", hint=f"give hosts.{hosts[0].name}.servers in the inventory")
    return pairs


def select_hosts(fleet: Fleet, selection: Selection) -> tuple[Host, ...]:
    """Return the chosen hosts, with or without servers."""
    if not (selection.hosts or selection.groups or selection.everything):
        ways = "--host NAME" if selection.by_host_only else "--host NAME, --group NAME or --all"
        raise UsageError("no host is selected", hint=f"give {ways} (globs such as 'b300-*' work)")
    if selection.everything and (selection.hosts or selection.groups):
        raise UsageError("--all and a selection of hosts contradict each other", hint="keep one of the two")
    names = [host.name for host in fleet.hosts]
    groups = tuple(dict.fromkeys(group for host in fleet.hosts for group in host.groups))
    for pattern in selection.hosts:
        _demand(pattern, names, "host", "in the inventory")
    for pattern in selection.groups:
        _demand(pattern, groups, "group with hosts", "in the inventory")
    chosen = [host for host in fleet.hosts if selection.everything or _chosen(host, selection)]
    for pattern in selection.excludes:
        _demand(pattern, [host.name for host in chosen], "host", "among the selected", option="--exclude ")
    kept = tuple(host for host in chosen if not _matches(host.name, selection.excludes))
    if not kept:
        empty = "every selected host is excluded" if chosen else "the inventory has no hosts"
        raise UsageError(empty, hint=LIST_HINT)
    return kept


def _chosen(host: Host, selection: Selection) -> bool:
    return _matches(host.name, selection.hosts) or any(_matches(group, selection.groups) for group in host.groups)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _demand(pattern: str, names: Collection[str], kind: str, where: str, *, option: str = "") -> None:
    """Raise unless the pattern matches one of the names."""
    if any(fnmatchcase(name, pattern) for name in names):
        return
    near = nearest(pattern, names)
    guess = f" (did you mean {near}?)" if near else f" (there is {listed(names)})"
    hint = "repeat the option for several names" if "," in pattern or " " in pattern else LIST_HINT
    raise UsageError(f"{option}{pattern} matches no {kind} {where}{guess}", hint=hint)
