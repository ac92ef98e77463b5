"""The resolved inventory: what every other part of specctl reads; built by fleet/resolve.py, never by hand outside tests."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from specctl.engines.types import EngineProfile, FlagValue


class SecretSource(enum.Enum):
    """Where the operator's machine finds a secret's value."""

    ENV = "env"
    FILE = "file"
    CMD = "cmd"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """A reference to a secret; its value never enters this object (adapters/secrets.py reads it when it is needed)."""

    source: SecretSource
    locator: str

    def __str__(self) -> str:
        return f"{self.source.value}:{self.locator}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a resolved value came from: its layer and, for a file, its place (1-based).

    Layers: built in, defaults, hardware:NAME, server:NAME, group:NAME, host:NAME, command line.
    """

    layer: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.layer} ({self.file}:{self.line}:{self.column})" if self.file else self.layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A target or a draft: its folder on the host and what is known of it (None: not known).

    `size_bytes` is the size of all weights; `block_size` and `target` speak of a draft.
    """

    name: str
    path: str
    size_bytes: int | None = None
    block_size: int | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a host of this kind has; None: not known."""

    name: str
    gpu_model: str | None = None
    gpu_count: int | None = None
    gpu_memory_bytes: int | None = None
    interconnect: str | None = None
    verify_cliff_tokens: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long each part of a deploy may take, in seconds."""

    load_s: float = 1200.0
    drain_s: float = 120.0
    stop_s: float = 60.0
    stall_s: float = 300.0
    smoke_s: float = 120.0
    guard_s: float = 1200.0
    confirm_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSettings:
    """What the service manager is told beside the launch: `extra` are literal lines of the unit's [Service] section."""

    user: str | None = None
    memory_max: str | None = None
    restart: bool = True
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A rule that somebody decided not to follow, and why."""

    rule: str
    reason: str


class AgentMode(enum.Enum):
    """How far the agent on a host may go: watch, say what it would do, do it."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ACT = "act"


class Objective(enum.Enum):
    """What the agent makes best: the time that one token of a request takes, or the tokens of all requests together."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The router that sends requests to a server; `worker` is the server's address as the router knows it."""

    kind: str
    url: str
    worker: str
    api_key: SecretRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Programs that take requests off a server and bring them back, as argv; each may take `limit_s`."""

    pre_drain: tuple[str, ...] = ()
    post_ready: tuple[str, ...] = ()
    limit_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What the agent on the host may do with a server, and by which measure.

    `algos` and `knobs` are what the agent owns: the algos that it chooses among, and each knob with its lowest and highest
    value; all else is the inventory's. `floor_tokens_per_s` is the least that the other objective must keep: tokens of all
    requests under latency, of one request under throughput. `calibration` is a file on the operator's machine; `context_tokens`
    the shortest and longest context that is usual. `table`: the engine is given a table of modes by number of requests, and
    follows it by itself.
    """

    mode: AgentMode = AgentMode.OBSERVE
    objective: Objective = Objective.LATENCY
    floor_tokens_per_s: float | None = None
    algos: tuple[str, ...] = ()
    knobs: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    min_dwell_s: float = 900.0
    switches_a_day: int = 8
    outage_ok: bool = False
    gateway: Gateway | None = None
    hooks: Hooks | None = None
    calibration: str | None = None
    model_class: str | None = None
    table: bool = False
    context_tokens: tuple[int, int] | None = None

    def steps(self, algo: str, knob: str) -> tuple[int, ...]:
        """Return the values to which the agent may turn a knob: its bounds and the powers of two between; none where it owns none.

        A budget more or less between two of these is within what a throughput model can tell.
        """
        low, high = self.knobs.get(algo, {}).get(knob, (1, 0))
        between = {2**power for power in range(31) if low < 2**power < high}
        return tuple(sorted({low, high} | between)) if low <= high else ()

    @property
    def drains(self) -> bool:
        """Claim that requests can be taken off the server before it is stopped, or that an outage is accepted."""
        hooked = self.hooks is not None and bool(self.hooks.pre_drain) and bool(self.hooks.post_ready)
        return self.gateway is not None or hooked or self.outage_ok


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One engine process that should run on one host.

    `options` are engine flags by their exact name with leading dashes, in the order to be rendered; `knobs` by algo;
    `provenance` maps a dotted path ("options.--page-size", "env.NCCL_ALGO", "port") to the value's origin.
    """

    name: str
    profile: EngineProfile
    target: Model
    draft: Model | None
    port: int
    bind: str
    algo: str
    python: str
    tp: int | None = None
    gpus: tuple[int, ...] = ()
    cuda_home: str | None = None
    served_name: str | None = None
    working_dir: str | None = None
    knobs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    options: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, SecretRef] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    unit: UnitSettings = field(default_factory=UnitSettings)
    waivers: tuple[Waiver, ...] = ()
    agent: AgentSettings = field(default_factory=AgentSettings)
    provenance: Mapping[str, Origin] = field(default_factory=dict)


class Via(enum.Enum):
    """How specctl reaches a host."""

    SSH = "ssh"
    LOCAL = "local"


class ServiceManager(enum.Enum):
    """What keeps the engine running on a host."""

    SYSTEMD = "systemd"
    SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine: how to reach it, what it is, and the servers that it should run.

    `address`, `user` and `port` are what the inventory says; None leaves them to OpenSSH's configuration. `python` is the
    interpreter (>= 3.8) that specctl's own scripts use on the host; `state_dir` holds releases, records and locks.
    """

    name: str
    via: Via
    address: str | None = None
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    sudo: bool = False
    python: str = "python3"
    manager: ServiceManager = ServiceManager.SYSTEMD
    state_dir: PurePosixPath = PurePosixPath("/var/lib/specctl")
    groups: tuple[str, ...] = ()
    hardware: Hardware | None = None
    servers: tuple[Server, ...] = ()
    provenance: Mapping[str, Origin] = field(default_factory=dict)

    def server(self, name: str) -> Server | None:
        """Return the server of that name on this host, or None."""
        return next((server for server in self.servers if server.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The resolved inventory, hosts in file order."""

    hosts: tuple[Host, ...]
    files: tuple[str, ...] = ()

    def host(self, name: str) -> Host | None:
        """Return the host of that name, or None."""
        return next((host for host in self.hosts if host.name == name), None)
