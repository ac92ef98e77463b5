"""The facts of a host and of a server on it, parsed from what the host's session answers; absent is None, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.rollout.observation import Port, UnitState


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRelease:
    """The release that the host's `current` link names."""

    id: str
    algo: str
    manifest: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who holds a server; ages in seconds; `remaining_s` None: until it is released by hand."""

    owner: str
    reason: str | None = None
    age_s: float | None = None
    remaining_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What is known of one server on one host; None: could not be found out."""

    name: str
    current: CurrentRelease | None = None
    releases: tuple[str, ...] = ()
    drift: bool | None = None
    unit: UnitState = field(default_factory=UnitState)
    port: Port | None = None
    port_owner: str | None = None
    lease: Lease | None = None
    records: tuple[Mapping[str, object], ...] = ()
    past_loads_s: tuple[float, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    target_bytes: int | None = None
    draft_bytes: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as the driver names it; memory in bytes."""

    index: int
    uuid: str | None = None
    model: str | None = None
    memory_bytes: int | None = None
    used_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of a host; None: could not be found out."""

    host: str
    cpu_count: int | None = None
    memory_bytes: int | None = None
    disk_free_bytes: int | None = None
    gpus: tuple[Gpu, ...] | None = None
    servers: Mapping[str, ServerFacts] = field(default_factory=dict)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> tuple[Mapping[str, object], ...]:
    return tuple(row for row in value if isinstance(row, Mapping)) if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
