"""Merge what all layers say of each host and each server on it: leaves with origins, not yet values of fleet/types.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specctl.engines.types import EngineProfile
from specctl.fleet import layers
from specctl.fleet.declared import Entry, Inventory
from specctl.fleet.layers import Layer, Leaves
from specctl.fleet.profiles import Profiles
from specctl.fleet.schema import GroupSection, HardwareSection, HostSection, ServerSection, SharedSection

HOST_KEYS = ("connect", "service_manager", "state_dir", "python")
REFERENCE_KEYS = ("engine", "target", "draft")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One server on one host, merged; `profile` is None where it cannot be known."""

    host: Entry[HostSection]
    server: Entry[ServerSection]
    section: ServerSection
    profile: EngineProfile | None
    hardware: HardwareSection | None
    leaves: Leaves

    def value(self, *path: str) -> object:
        """Return a merged value, or None."""
        leaf = self.leaves.get(path)
        return leaf.value if leaf is not None else None

    def says(self, *keys: str) -> bool:
        """Claim that the server, or the host's launch, has one of these keys, be its value refused or not."""
        places = ((self.server, ()), (self.host, ("launch",)))
        return any((*entry.path, *below, key) in entry.document.spots for entry, below in places for key in keys)

    def whole(self, *path: str) -> int | None:
        """Return a merged whole number, or None."""
        value = self.value(*path)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def algo(self) -> str:
        """The algo that the launch asks for."""
        return str(self.value("algo"))

    @property
    def gpus(self) -> tuple[int, ...]:
        """The GPUs that the launch names."""
        value = self.value("gpus")
        return tuple(index for index in value if isinstance(index, int)) if isinstance(value, tuple) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedHost:
    """One host, merged, with its groups in the order in which they apply."""

    entry: Entry[HostSection]
    section: HostSection
    groups: tuple[str, ...]
    hardware: Entry[HardwareSection] | None
    leaves: Leaves
    placements: tuple[Placement, ...]


def hosts(inventory: Inventory, profiles: Profiles) -> tuple[MergedHost, ...]:
    """Merge every host whose section can be read, in file order."""
    return tuple(
        _host(inventory, profiles, entry, entry.section)
        for entry in inventory.hosts.values()
        if entry.section is not None
    )


def groups_of(inventory: Inventory, name: str, section: HostSection) -> tuple[str, ...]:
    """Return a host's groups: those it names, in its order, then those that name it, in file order."""
    own = [group for group in section.groups or () if group in inventory.groups]
    naming = [
        group for group, entry in inventory.groups.items() if entry.section and name in (entry.section.hosts or ())
    ]
    return tuple(dict.fromkeys((*own, *naming)))


def _host(inventory: Inventory, profiles: Profiles, entry: Entry[HostSection], section: HostSection) -> MergedHost:
    names = groups_of(inventory, entry.name, section)
    groups = [inventory.groups[name] for name in names]
    hardware = inventory.hardware.get(section.hardware) if section.hardware is not None else None
    shared = [
        _host_layer("defaults", inventory.defaults),
        *(_host_layer(f"group:{group.name}", group) for group in groups),
        _host_layer(f"host:{entry.name}", entry),
    ]
    servers = [inventory.servers[name] for name in dict.fromkeys(section.servers or ()) if name in inventory.servers]
    return MergedHost(
        entry=entry,
        section=section,
        groups=names,
        hardware=hardware,
        leaves=layers.lay(layers.built_in_host_leaves(), shared),
        placements=tuple(
            _placement(inventory, profiles, entry, groups, hardware, server, server.section)
            for server in servers
            if server.section is not None
        ),
    )


def _placement(
    inventory: Inventory,
    profiles: Profiles,
    host: Entry[HostSection],
    groups: Sequence[Entry[GroupSection]],
    hardware: Entry[HardwareSection] | None,
    server: Entry[ServerSection],
    section: ServerSection,
) -> Placement:
    stack = [
        _launch_layer("defaults", inventory.defaults),
        _launch_layer(f"hardware:{hardware.name}", hardware) if hardware is not None else None,
        layers.section_layer(f"server:{server.name}", section, server.document, server.path),
        *(_launch_layer(f"group:{group.name}", group) for group in groups),
        _launch_layer(f"host:{host.name}", host),
    ]
    return Placement(
        host=host,
        server=server,
        section=section,
        profile=profiles.get(section.engine) if section.engine in profiles.names() else None,
        hardware=hardware.section if hardware is not None else None,
        leaves=layers.lay(layers.built_in_leaves(), stack),
    )


def _launch_layer(name: str, entry: Entry[SharedSection] | Entry[HardwareSection] | None) -> Layer | None:
    if entry is None or entry.section is None:
        return None
    return layers.section_layer(name, entry.section.launch, entry.document, (*entry.path, "launch"))


def _host_layer(name: str, entry: Entry[SharedSection] | None) -> Layer | None:
    if entry is None or entry.section is None:
        return None
    dumped = entry.section.said()
    kept = {key: dumped[key] for key in HOST_KEYS if key in dumped}
    return Layer(name=name, section=kept, document=entry.document, path=entry.path)
