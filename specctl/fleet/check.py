"""Check a whole inventory: every problem of every file at once, in the order of files and lines; called by fleet/resolve.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specctl.errors import Problem
from specctl.fleet import merge, positions
from specctl.fleet.declared import Inventory, declare
from specctl.fleet.merge import MergedHost
from specctl.fleet.positions import Reading
from specctl.fleet.profiles import Profiles, Shelf
from specctl.fleet.rules import agents, conflicts, launches, names, references, secrets, servers
from specctl.fleet.validate import validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An inventory, merged, with all its problems; without any, fleet/resolve.py can build the fleet."""

    inventory: Inventory
    profiles: Profiles
    hosts: tuple[MergedHost, ...]
    problems: tuple[Problem, ...]


def check(readings: Sequence[Reading], shelf: Shelf) -> Checked:
    """Hold everything against everything; what is wrong in one place keeps no other place from being looked at."""
    problems = [reading.problem for reading in readings if reading.problem is not None]
    documents = [positions.read(reading.file, reading.root) for reading in readings if reading.root is not None]
    parts = []
    for document in documents:
        file, faults = validate(document)
        problems.extend((*document.problems, *faults))
        parts.append((document, file))
    inventory, taken = declare(parts)
    profiles = Profiles(inventory.profiles, shelf)
    hosts = merge.hosts(inventory, profiles)
    problems.extend(taken)
    for rule in (names.check, launches.check, secrets.check):
        problems.extend(rule(inventory))
    problems.extend(references.check(inventory, profiles))
    problems.extend(profiles.check())
    problems.extend(servers.check([placement for host in hosts for placement in host.placements], profiles))
    problems.extend(conflicts.check(hosts))
    problems.extend(agents.check(hosts))
    files = [reading.file for reading in readings]
    return Checked(inventory=inventory, profiles=profiles, hosts=hosts, problems=_ordered(problems, files))


def _ordered(problems: Sequence[Problem], files: Sequence[str]) -> tuple[Problem, ...]:
    """Return each problem once, by file, line and column."""
    rank = {file: index for index, file in enumerate(dict.fromkeys(files))}
    last = len(rank)
    return tuple(sorted(dict.fromkeys(problems), key=lambda p: (rank.get(p.file, last), p.line or 0, p.column or 0)))
