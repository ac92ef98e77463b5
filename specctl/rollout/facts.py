"""The facts of a host and of a server on it, parsed from what the host's session answers; absent is None, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specctl.algos import ALGOS
from specctl.fleet.types import Server
from specctl.rollout import reading
from specctl.rollout.gate_types import PastLoad, Phase, PhaseSpan
from specctl.rollout.gpu_facts import Graphics
from specctl.rollout.guarded import Guard
from specctl.rollout.machine_facts import Machine
from specctl.rollout.model_facts import ModelFacts
from specctl.rollout.observation import Port, UnitState
from specctl.rollout.record import past_load_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRelease:
    """The release that the host's `current` link names."""

    id: str
    algo: str
    manifest: Mapping[str, object] = field(default_factory=dict)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each of its files, secret ones left out, as its manifest has them."""
        return stored_digests(self.manifest)

    def knobs(self) -> Mapping[str, int]:
        """Return the knobs that the release gives to its algo."""
        return stored_knobs(self.manifest, self.algo)


def stored_digests(manifest: Mapping[str, object]) -> dict[str, str]:
    """Return the SHA-256 of each file of a manifest by name, secret ones left out."""
    return {str(name): str(digest) for name, digest in reading.mapping(manifest.get("files")).items()}


def stored_knobs(manifest: Mapping[str, object], algo: str) -> Mapping[str, int]:
    """Return the knobs that a manifest gives to an algo, in the algo's own order."""
    found = reading.mapping(reading.mapping(manifest.get("knobs")).get(algo))
    known = [knob.name for knob in ALGOS[algo].knobs] if algo in ALGOS else []
    names = [*(name for name in known if name in found), *(str(name) for name in found if name not in known)]
    return {name: value for name in names if (value := reading.whole(found[name])) is not None}


def stored_units(manifest: Mapping[str, object]) -> Mapping[str, str]:
    """Return the main file of each algo of a manifest."""
    return {str(algo): str(name) for algo, name in reading.mapping(manifest.get("units")).items()}


def as_deployed(server: Server, manifest: Mapping[str, object]) -> Server:
    """Return the server with the address of a release on the host: what runs may be older than the inventory."""
    port, bind = reading.whole(manifest.get("port")), reading.text(manifest.get("bind"))
    return replace(server, port=port or server.port, bind=bind or server.bind)


def stored_launch(manifest: Mapping[str, object], algo: str) -> Mapping[str, object]:
    """Return argv and environment of an algo as a manifest keeps them."""
    return reading.mapping(reading.mapping(manifest.get("launches")).get(algo))


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
    `unreadable`: why it is not known what is deployed; `current` is None then too. `now_s`: the host's monotonic clock when the
    facts were taken. `loaded`: systemd's word (masked, not-found …). `own_pids`: the processes that the service manager counts
    as this server's.
    """

    name: str
    current: CurrentRelease | None = None
    unreadable: str | None = None
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
    target: ModelFacts | None = None
    draft: ModelFacts | None = None
    python_path: str | None = None
    python_runs: bool | None = None
    loaded: str | None = None
    own_pids: tuple[int, ...] | None = None
    warnings: tuple[str, ...] = ()
    now_s: float | None = None

    @classmethod
    def from_wire(cls, fields: Mapping[str, object], now_s: float | None) -> ServerFacts:
        """Build it from one entry of the host's answer."""
        drifted = fields.get("drift") is True
        warnings = reading.texts(fields.get("warnings"))
        drift = _drift(fields.get("drifted"), warnings) if drifted else ()
        current, python = reading.mapping(fields.get("current")), reading.mapping(fields.get("python"))
        pids = fields.get("own_pids")
        return cls(
            name=reading.text(fields.get("name")) or "",
            current=_current(current),
            unreadable=reading.text(fields.get("unreadable")),
            current_unit=reading.text(current.get("text")) or "",
            releases=reading.texts(fields.get("releases")),
            drift=drift,
            unit=UnitState.from_wire(fields.get("unit")),
            port=next((port for port in Port if port.value == fields.get("port")), None),
            port_owner=reading.text(fields.get("port_owner")),
            lease=_lease(fields.get("lease")),
            guard=Guard.from_wire(fields.get("guard")),
            records=reading.rows(fields.get("records")),
            packages={str(k): str(v) for k, v in reading.mapping(fields.get("packages")).items()},
            package_digests={str(k): str(v) for k, v in reading.mapping(fields.get("package_digests")).items()},
            target_bytes=reading.whole(fields.get("target_bytes")),
            draft_bytes=reading.whole(fields.get("draft_bytes")),
            target=ModelFacts.from_wire(fields.get("target")),
            draft=ModelFacts.from_wire(fields.get("draft")),
            python_path=reading.text(python.get("path")),
            python_runs=reading.claim(python.get("runs")),
            loaded=reading.text(reading.mapping(fields.get("unit")).get("loaded")),
            own_pids=reading.wholes(pids) if isinstance(pids, list) else None,
            warnings=tuple(warning for warning in warnings if warning not in drift),
            now_s=now_s,
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "name": self.name,
            "release": self.current.id if self.current else None,
            "algo": self.current.algo if self.current else None,
            "releases": list(self.releases),
            "digests": self.current.digests() if self.current else {},
            "drift": list(self.drift),
            "active": self.unit.active,
            "loaded": self.loaded,
            "port": self.port.value if self.port else None,
            "port_owner": self.port_owner,
            "locked_by": self.lease.owner if self.lease else None,
            "guard": self.guard.as_wire() if self.guard else None,
            "python": self.python_path,
            "python_runs": self.python_runs,
            "packages": dict(self.packages),
            "package_digests": dict(self.package_digests),
            "target": self.target.as_wire() if self.target else None,
            "draft": self.draft.as_wire() if self.draft else None,
            "warnings": list(self.warnings),
        }

    @property
    def trouble(self) -> str | None:
        """Say why it is not known what is deployed, None where it is."""
        return None if self.unreadable is None else f"what is deployed cannot be read: {self.unreadable}"

    def remedy(self, host: str) -> str | None:
        """Say what to do about that."""
        return None if self.unreadable is None else f"set sudo: true for {host} in the inventory, or look at that file"

    @property
    def weights_bytes(self) -> int | None:
        """Return the size of target and draft together, as far as it was found out."""
        known = [size for size in (self.target_bytes, self.draft_bytes) if size is not None]
        return sum(known) if known else None

    def past_loads(self, algo: str) -> tuple[PastLoad, ...]:
        """Return this host's past loads of the algo (of any, where there is none), oldest first, with their phases."""
        rows = past_load_rows(self.records, algo)
        return tuple(PastLoad(total_s=seconds, phases=_phases(row.get("phases"))) for row, seconds in rows)


def _drift(words: object, warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return in which ways the host differs; a host that only says that it does has it among its warnings."""
    return reading.texts(words) or warnings or ("the host differs from its current release",)


def _current(fields: Mapping[str, object]) -> CurrentRelease | None:
    release, algo = reading.text(fields.get("id")), reading.text(fields.get("algo"))
    if release is None or algo is None:
        return None
    return CurrentRelease(id=release, algo=algo, manifest=reading.mapping(fields.get("manifest")))


def _lease(value: object) -> Lease | None:
    fields = reading.mapping(value)
    owner = reading.text(fields.get("owner"))
    if owner is None:
        return None
    return Lease(
        owner=owner,
        reason=reading.text(fields.get("reason")),
        age_s=reading.number(fields.get("age_s")),
        remaining_s=reading.number(fields.get("remaining_s")),
    )


def _phases(value: object) -> tuple[PhaseSpan, ...]:
    """Return the phases of a recorded load; a span that makes no sense is left out."""
    spans = []
    for row in value if isinstance(value, list) else []:
        if not isinstance(row, list) or len(row) != 3:
            continue
        phase = next((phase for phase in Phase if phase.value == row[0]), None)
        began_s = reading.number(row[1])
        if phase is not None and began_s is not None:
            spans.append(PhaseSpan(phase=phase, began_s=began_s, took_s=reading.number(row[2])))
    return tuple(spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of a host and of the servers asked about; `warnings` say what could not be found out."""

    host: str
    machine: Machine = field(default_factory=Machine)
    graphics: Graphics = field(default_factory=Graphics)
    servers: Mapping[str, ServerFacts] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, host: str, answer: Mapping[str, object], now_s: float | None = None) -> HostFacts:
        """Build it from what the session answered; `now_s` is the operator's wall clock when it arrived."""
        at_s = reading.number(answer.get("at_s"))
        servers = [ServerFacts.from_wire(row, at_s) for row in reading.rows(answer.get("servers"))]
        return cls(
            host=host,
            machine=Machine.from_wire(answer, now_s),
            graphics=Graphics.from_wire(answer),
            servers={server.name: server for server in servers},
            warnings=reading.texts(answer.get("warnings")),
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "host": self.host,
            "machine": self.machine.as_wire(),
            "graphics": self.graphics.as_wire(),
            "servers": [server.as_wire() for server in self.servers.values()],
            "warnings": list(self.warnings),
        }
