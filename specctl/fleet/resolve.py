"""Turn readings into the Fleet that all of specctl reads; the command line is the last layer, of selected servers alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from specctl.errors import InventoryError
from specctl.fleet import build, check, command_line
from specctl.fleet.overrides import Overrides
from specctl.fleet.positions import Reading
from specctl.fleet.profiles import Shelf
from specctl.fleet.types import Fleet, Host, Server


class Resolved:
    """An inventory without problems: its fleet, all its engine profiles, and the means to lay a command line over some servers."""

    def __init__(self, checked: check.Checked) -> None:
        self._checked = checked
        self.profiles = checked.profiles
        hosts = tuple(build.host(checked.inventory, host) for host in checked.hosts)
        self.fleet = Fleet(hosts=hosts, files=checked.inventory.files)

    def over(self, selected: Sequence[tuple[Host, Server]], overrides: Overrides) -> tuple[tuple[Host, Server], ...]:
        """Return the selected servers under the command line; their hosts hold the same new servers.

        Raises UsageError or UnsupportedError for what one of them cannot take.
        """
        changed = {(host.name, server.name): self._one(host, server, overrides) for host, server in selected}
        pairs = []
        for host, server in selected:
            servers = tuple(changed.get((host.name, one.name), one) for one in host.servers)
            pairs.append((dataclasses.replace(host, servers=servers), changed[host.name, server.name]))
        return tuple(pairs)

    def _one(self, host: Host, server: Server, overrides: Overrides) -> Server:
        merged = next(one for one in self._checked.hosts if one.entry.name == host.name)
        placement = next(one for one in merged.placements if one.server.name == server.name)
        over = command_line.override(placement, server.profile, overrides, self._checked.profiles)
        return build.server(self._checked.inventory, over, server.profile)


def resolve(readings: Sequence[Reading], shelf: Shelf) -> Resolved:
    """Check and resolve; raise InventoryError with every problem."""
    checked = check.check(readings, shelf)
    if checked.problems:
        raise InventoryError(checked.problems)
    return Resolved(checked)
