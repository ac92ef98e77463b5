"""Build the values of fleet/types.py from merged leaves; all has been checked, so a wrong kind is a fault of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from specctl.engines.types import EngineProfile, FlagValue
from specctl.fleet import units
from specctl.fleet.build_agent import agent
from specctl.fleet.declared import Entry, Inventory
from specctl.fleet.layers import Leaf, Leaves
from specctl.fleet.merge import REFERENCE_KEYS, MergedHost, Placement
from specctl.fleet.profiles import flag_value
from specctl.fleet.schema import HardwareSection, ModelSection
from specctl.fleet.schema_section import Section
from specctl.fleet.types import (
    Hardware,
    Host,
    Limits,
    Model,
    Origin,
    SecretRef,
    SecretSource,
    Server,
    ServiceManager,
    UnitSettings,
    Via,
    Waiver,
)


def host(inventory: Inventory, merged: MergedHost) -> Host:
    """Build a host with its servers."""
    leaves = merged.leaves
    return Host(
        name=merged.entry.name,
        via=Via(str(leaves["connect", "via"].value)),
        address=_text(leaves, "connect", "address"),
        user=_text(leaves, "connect", "user"),
        port=_whole(leaves, "connect", "port"),
        identity_file=_text(leaves, "connect", "identity_file"),
        sudo=leaves["connect", "sudo"].value is True,
        python=str(leaves["python",].value),
        manager=ServiceManager(str(leaves["service_manager",].value)),
        state_dir=PurePosixPath(str(leaves["state_dir",].value)),
        groups=merged.groups,
        hardware=None if merged.hardware is None else hardware(merged.hardware),
        servers=tuple(
            server(inventory, placement, placement.profile) for placement in merged.placements if placement.profile
        ),
        provenance=_provenance(leaves) | _host_origins(inventory, merged),
    )


def _host_origins(inventory: Inventory, merged: MergedHost) -> dict[str, Origin]:
    """Return where a host's hardware and groups come from; a group that names the host counts where the host names none."""
    said = [key for key in ("hardware", "groups") if getattr(merged.section, key)]
    found = {key: _reference_origin(merged.entry, key, "host") for key in said}
    if merged.groups and "groups" not in found:
        found["groups"] = _reference_origin(inventory.groups[merged.groups[0]], "hosts", "group")
    return found


def server(inventory: Inventory, placement: Placement, profile: EngineProfile) -> Server:
    """Build one server of a host."""
    leaves, section = placement.leaves, placement.section
    port = _whole(leaves, "port")
    assert port is not None, "a server without a port has been refused"
    own = [key for key in REFERENCE_KEYS if getattr(section, key) is not None]
    return Server(
        name=placement.server.name,
        profile=profile,
        target=model(inventory.models[section.target]),
        draft=None if section.draft is None else model(inventory.models[section.draft]),
        port=port,
        bind=str(leaves["bind",].value),
        algo=placement.algo,
        python=_interpreter(leaves),
        tp=_whole(leaves, "tp"),
        gpus=placement.gpus,
        cuda_home=_text(leaves, "cuda_home"),
        served_name=_text(leaves, "served_name"),
        working_dir=_text(leaves, "working_dir"),
        knobs=_knobs(leaves),
        options=_options(leaves),
        env=_env(leaves),
        secrets=_secrets(leaves),
        limits=_limits(leaves),
        unit=_unit(leaves),
        waivers=tuple(Waiver(rule=path[1], reason=str(leaf.value)) for path, leaf in _below(leaves, "waivers").items()),
        agent=agent(leaves),
        provenance=_provenance(leaves)
        | ({"python": leaves["venv",].origin} if ("venv",) in leaves else {})
        | {key: _reference_origin(placement.server, key, "server") for key in own},
    )


def model(entry: Entry[ModelSection]) -> Model:
    """Build a model."""
    section = entry.section
    assert section is not None, "a model that the schema refused has been reported"
    return Model(
        name=entry.name,
        path=section.path,
        size_bytes=_size(section.size),
        block_size=section.block_size,
        target=section.target,
    )


def hardware(entry: Entry[HardwareSection]) -> Hardware:
    """Build a kind of machine."""
    section = entry.section
    assert section is not None, "a hardware that the schema refused has been reported"
    gpus = section.gpus
    return Hardware(
        name=entry.name,
        gpu_model=gpus.model if gpus else None,
        gpu_count=gpus.count if gpus else None,
        gpu_memory_bytes=_size(gpus.memory) if gpus else None,
        interconnect=section.interconnect,
        verify_cliff_tokens=section.verify_cliff_tokens,
        note=section.note,
    )


def _reference_origin(entry: Entry[Section], key: str, kind: str) -> Origin:
    spot = entry.document.spots.get((*entry.path, key))
    place = spot.key if spot else None
    return Origin(
        layer=f"{kind}:{entry.name}",
        file=entry.document.file,
        line=place.line if place else None,
        column=place.column if place else None,
    )


def _size(value: object) -> int | None:
    return units.size_bytes(value) if isinstance(value, str) else None


def _interpreter(leaves: Leaves) -> str:
    venv = _text(leaves, "venv")
    return f"{venv.rstrip('/')}/bin/python" if venv is not None else _text(leaves, "python") or "python3"


def _below(leaves: Leaves, *prefix: str) -> Mapping[tuple[str, ...], Leaf]:
    return {path: leaf for path, leaf in leaves.items() if path[: len(prefix)] == prefix}


def _knobs(leaves: Leaves) -> Mapping[str, Mapping[str, int]]:
    knobs: dict[str, dict[str, int]] = {}
    for path in _below(leaves, "knobs"):
        value = _whole(leaves, *path)
        assert value is not None, "the schema lets only whole numbers be knobs"
        knobs.setdefault(path[1], {})[path[2]] = value
    return knobs


def _options(leaves: Leaves) -> Mapping[str, FlagValue]:
    return {path[1]: flag_value(leaf.value) for path, leaf in _below(leaves, "options").items()}


def _env(leaves: Leaves) -> Mapping[str, str]:
    return {path[1]: leaf.text for path, leaf in _below(leaves, "env").items()}


def _secrets(leaves: Leaves) -> Mapping[str, SecretRef]:
    found = {}
    for path, leaf in _below(leaves, "secrets").items():
        source, _, locator = str(leaf.value).partition(":")
        found[path[1]] = SecretRef(source=SecretSource(source), locator=locator)
    return found


def _limits(leaves: Leaves) -> Limits:
    def limit(name: str) -> float:
        value = leaves[("limits", name)].value
        return units.seconds(value) if isinstance(value, str) else float(str(value))

    return Limits(
        load_s=limit("load"),
        drain_s=limit("drain"),
        stop_s=limit("stop"),
        stall_s=limit("stall"),
        smoke_s=limit("smoke"),
        guard_s=limit("guard"),
        confirm_s=limit("confirm"),
    )


def _unit(leaves: Leaves) -> UnitSettings:
    memory = _text(leaves, "unit", "memory_max")
    extra: list[tuple[str, str]] = []
    for path, leaf in _below(leaves, "unit", "extra").items():
        values = leaf.value if isinstance(leaf.value, list) else [leaf.value]
        extra.extend((path[2], str(value)) for value in values)
    return UnitSettings(
        user=_text(leaves, "unit", "user"),
        memory_max=None if memory is None else str(units.size_bytes(memory)),
        restart=leaves["unit", "restart"].value is True,
        extra=tuple(extra),
    )


def _provenance(leaves: Leaves) -> dict[str, Origin]:
    return {".".join(path): leaf.origin for path, leaf in leaves.items()}


def _text(leaves: Leaves, *path: str) -> str | None:
    leaf = leaves.get(path)
    return None if leaf is None else str(leaf.value)


def _whole(leaves: Leaves, *path: str) -> int | None:
    leaf = leaves.get(path)
    if leaf is None:
        return None
    assert isinstance(leaf.value, int), f"{'.'.join(path)} is no whole number"
    return leaf.value
