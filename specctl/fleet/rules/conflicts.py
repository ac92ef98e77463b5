"""What servers of one machine cannot share, a port and a GPU, and GPUs that a host does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specctl.errors import Problem
from specctl.fleet.merge import MergedHost, Placement
from specctl.fleet.suggest import listed


def check(hosts: Sequence[MergedHost]) -> Iterator[Problem]:
    """Yield the conflicts of every host."""
    machines: dict[tuple[object, ...], list[Placement]] = {}
    for host in hosts:
        machines.setdefault(_machine(host), []).extend(host.placements)
        yield from _connection(host)
        for placement in host.placements:
            yield from _outside(placement)
    for placements in machines.values():
        yield from _ports(placements)
        yield from _gpus(placements)


def _machine(host: MergedHost) -> tuple[object, ...]:
    """Tell machines apart: two hosts at one address, or both this machine, are one."""
    said = {
        key: leaf.value for key in ("via", "address", "port") if (leaf := host.leaves.get(("connect", key))) is not None
    }
    if said["via"] == "local":
        return ("local",)
    return (said.get("address", host.entry.name), said.get("port"))


def _connection(host: MergedHost) -> Iterator[Problem]:
    via = host.leaves.get(("connect", "via"))
    if via is None or via.value != "local":
        return
    for key in ("address", "user", "port", "identity_file"):
        leaf = host.leaves.get(("connect", key))
        if leaf is not None and leaf.origin.layer == f"host:{host.entry.name}":
            yield leaf.problem("has no meaning for a host that is this machine (via: local)", at_key=True)


def _ports(placements: Sequence[Placement]) -> Iterator[Problem]:
    first: dict[int, Placement] = {}
    for placement in placements:
        port = placement.whole("port")
        if port is None:
            continue
        other = first.setdefault(port, placement)
        if other is not placement:
            words = f"port {port} of {placement.host.name} belongs to {_owner(other, placement)} already"
            words += f" (wanted by {placement.server.name})"
            yield placement.leaves[("port",)].problem(words)


def _gpus(placements: Sequence[Placement]) -> Iterator[Problem]:
    first: dict[int, Placement] = {}
    for placement in placements:
        clashes: dict[str, list[int]] = {}
        for gpu in placement.gpus:
            other = first.setdefault(gpu, placement)
            if other is not placement:
                clashes.setdefault(_owner(other, placement), []).append(gpu)
        for name, gpus in clashes.items():
            words = f"GPU {listed(str(gpu) for gpu in gpus)} of {placement.host.name} belongs to {name} already"
            yield placement.leaves[("gpus",)].problem(f"{words} (wanted by {placement.server.name})")


def _owner(other: Placement, placement: Placement) -> str:
    """Name the server that was there first, with its host where that is another entry for the same machine."""
    same = other.host.name == placement.host.name
    return other.server.name if same else f"{other.server.name} of {other.host.name}, the same machine,"


def _outside(placement: Placement) -> Iterator[Problem]:
    gpus = placement.gpus
    section = placement.hardware.gpus if placement.hardware else None
    count = section.count if section else None
    if count is not None and any(gpu >= count for gpu in gpus):
        words = f"{placement.host.name} has {count} GPUs, 0 to {count - 1}, and {placement.server.name} wants GPU {max(gpus)}"
        yield placement.leaves[("gpus",)].problem(words)
    tp = placement.whole("tp")
    if tp is not None and gpus and tp > len(gpus):
        words = f"splits {placement.server.name} over {tp} GPUs, and it has {len(gpus)}"
        yield placement.leaves[("tp",)].problem(words)
