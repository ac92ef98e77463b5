"""The facts of a host and of a server on it, parsed from what the host's session answers; absent is None, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.algos import ALGOS
from specctl.rollout.gate_types import PastLoad, Phase, PhaseSpan
from specctl.rollout.guarded import Guard
from specctl.rollout.observation import Port, UnitState
from specctl.rollout.record import past_load_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRelease:
    """The release that the host's `current` link names."""

    id: str
    algo: str
    manifest: Mapping[str, object] = field(default_factory=dict)

    def knobs(self) -> Mapping[str, int]:
        """Return the knobs that the release gives to its algo."""
        return stored_knobs(self.manifest, self.algo)


def stored_knobs(manifest: Mapping[str, object], algo: str) -> Mapping[str, int]:
    """Return the knobs that a manifest gives to an algo, in the algo's own order."""
    found = _mapping(_mapping(manifest.get("knobs")).get(algo))
    known = [knob.name for knob in ALGOS[algo].knobs] if algo in ALGOS else []
    names = [*(name for name in known if name in found), *(str(name) for name in found if name not in known)]
    return {name: value for name in names if (value := _whole(found[name])) is not None}


def stored_units(manifest: Mapping[str, object]) -> Mapping[str, str]:
    """Return the main file of each algo of a manifest."""
    return {str(algo): str(name) for algo, name in _mapping(manifest.get("units")).items()}


def stored_launch(manifest: Mapping[str, object], algo: str) -> Mapping[str, object]:
    """Return argv and environment of an algo as a manifest keeps them."""
    return _mapping(_mapping(manifest.get("launches")).get(algo))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who holds a server; ages in seconds; `remaining_s` None: until it is released by hand."""

    owner: str
    reason: str | None = None
    age_s: float | None = None
    remaining_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What is known of one server on one host; None: could not be found out.

    `drift`: in which ways the host differs from what its current release says. `current_unit`: text of the current main file.
    `now_s`: the host's monotonic clock when the facts were taken.
    """

    name: str
    current: CurrentRelease | None = None
    current_unit: str = ""
    releases: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    unit: UnitState = field(default_factory=UnitState)
    port: Port | None = None
    port_owner: str | None = None
    lease: Lease | None = None
    guard: Guard | None = None
    records: tuple[Mapping[str, object], ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    package_digests: Mapping[str, str] = field(default_factory=dict)
    target_bytes: int | None = None
    draft_bytes: int | None = None
    warnings: tuple[str, ...] = ()
    now_s: float | None = None

    @classmethod
    def from_wire(cls, fields: Mapping[str, object], now_s: float | None) -> ServerFacts:
        """Build it from one entry of the host's answer."""
        drifted = fields.get("drift") is True
        warnings = _texts(fields.get("warnings"))
        current = _mapping(fields.get("current"))
        return cls(
            name=_text(fields.get("name")) or "",
            current=_current(current),
            current_unit=_text(current.get("text")) or "",
            releases=_texts(fields.get("releases")),
            drift=(warnings or ("the host differs from its current release",)) if drifted else (),
            unit=UnitState.from_wire(fields.get("unit")),
            port=next((port for port in Port if port.value == fields.get("port")), None),
            port_owner=_text(fields.get("port_owner")),
            lease=_lease(fields.get("lease")),
            guard=Guard.from_wire(fields.get("guard")),
            records=_rows(fields.get("records")),
            packages={str(k): str(v) for k, v in _mapping(fields.get("packages")).items()},
            package_digests={str(k): str(v) for k, v in _mapping(fields.get("package_digests")).items()},
            target_bytes=_whole(fields.get("target_bytes")),
            draft_bytes=_whole(fields.get("draft_bytes")),
            warnings=() if drifted else warnings,
            now_s=now_s,
        )

    def past_loads(self, algo: str) -> tuple[PastLoad, ...]:
        """Return this host's past loads of the algo (of any, where there is none), oldest first, with their phases."""
        rows = past_load_rows(self.records, algo)
        return tuple(PastLoad(total_s=seconds, phases=_phases(row.get("phases"))) for row, seconds in rows)


def _current(fields: Mapping[str, object]) -> CurrentRelease | None:
    release, algo = _text(fields.get("id")), _text(fields.get("algo"))
    if release is None or algo is None:
        return None
    return CurrentRelease(id=release, algo=algo, manifest=_mapping(fields.get("manifest")))


def _lease(value: object) -> Lease | None:
    fields = _mapping(value)
    owner = _text(fields.get("owner"))
    if owner is None:
        return None
    return Lease(
        owner=owner,
        reason=_text(fields.get("reason")),
        age_s=_seconds(fields.get("age_s")),
        remaining_s=_seconds(fields.get("remaining_s")),
    )


def _phases(value: object) -> tuple[PhaseSpan, ...]:
    """Return the phases of a recorded load; a span that makes no sense is left out."""
    spans = []
    for row in value if isinstance(value, list) else []:
        if not isinstance(row, list) or len(row) != 3:
            continue
        phase = next((phase for phase in Phase if phase.value == row[0]), None)
        began_s = _seconds(row[1])
        if phase is not None and began_s is not None:
            spans.append(PhaseSpan(phase=phase, began_s=began_s, took_s=_seconds(row[2])))
    return tuple(spans)


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

    @classmethod
    def from_wire(cls, host: str, answer: Mapping[str, object]) -> HostFacts:
        """Build it from what the session answered."""
        now_s = _seconds(answer.get("at_s"))
        servers = [ServerFacts.from_wire(row, now_s) for row in _rows(answer.get("servers"))]
        gpus = answer.get("gpus")
        return cls(
            host=host,
            cpu_count=_whole(answer.get("cpu_count")),
            memory_bytes=_whole(answer.get("memory_bytes")),
            disk_free_bytes=_whole(answer.get("disk_free_bytes")),
            gpus=tuple(_gpu(row) for row in _rows(gpus)) if isinstance(gpus, list) else None,
            servers={server.name: server for server in servers},
        )


def _gpu(row: Mapping[str, object]) -> Gpu:
    return Gpu(
        index=_whole(row.get("index")) or 0,
        uuid=_text(row.get("uuid")),
        model=_text(row.get("name")),
        memory_bytes=_whole(row.get("memory_bytes")),
        used_bytes=_whole(row.get("used_bytes")),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> tuple[Mapping[str, object], ...]:
    return tuple(row for row in value if isinstance(row, Mapping)) if isinstance(value, list) else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
