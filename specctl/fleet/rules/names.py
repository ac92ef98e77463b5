"""Names: servers and hosts become unit names and folders, so their letters are few; other names must only be free of surprises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from specctl.errors import Problem
from specctl.fleet.declared import Entry, Inventory
from specctl.fleet.positions import shorten
from specctl.fleet.schema_section import Section

LONGEST = 63  # What a DNS label holds; unit names and folders hold more.
STRICT = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
# specctl-agent.service and specctl-agent-actuate.service are the agent's own.
RESERVED = frozenset({"agent", "agent-actuate"})
LOOSE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def check(inventory: Inventory) -> Iterator[Problem]:
    """Yield the names that cannot be used."""
    strict: Mapping[str, Mapping[str, Entry[Section]]] = {"host": inventory.hosts, "server": inventory.servers}
    for kind, entries in strict.items():
        yield from _unfit(kind, entries, STRICT, "a-z, 0-9 and - inside, since it becomes a unit's name")
    for name in sorted(RESERVED & inventory.servers.keys()):
        yield inventory.servers[name].problem(
            f'"{name}" cannot name a server: the agent on a host has units of that name'
        )
    loose: Mapping[str, Mapping[str, Entry[Section]]] = {
        "engine profile": inventory.profiles,
        "hardware": inventory.hardware,
        "model": inventory.models,
        "group": inventory.groups,
    }
    for kind, entries in loose.items():
        yield from _unfit(kind, entries, LOOSE, "letters, digits and . _ - inside")


def _unfit(kind: str, entries: Mapping[str, Entry[Section]], allowed: re.Pattern[str], words: str) -> Iterator[Problem]:
    for name, entry in entries.items():
        if len(name) > LONGEST:
            yield entry.problem(f"the name of a {kind} has at most {LONGEST} characters")
        elif not allowed.fullmatch(name):
            better = re.sub(r"[ _./:]+", "-", name if allowed is LOOSE else name.lower()).strip("-")
            fits = allowed.fullmatch(better) and better != name
            yield entry.problem(f'"{shorten(name)}" cannot name a {kind}: {words}', suggestion=better if fits else None)
