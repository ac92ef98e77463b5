"""All that the doctor may know of one server; every part may be absent, and absent means that nobody looked or nobody tells.

Pure values. ops/doctor.py gathers them from a host, doctor/figures.py reads them from a file; checks only read them. Numbers that
make no sense (NaN, negative, beyond 10¹⁵) never get in here: the readers make them None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.sample.engine import DecodeLine, EngineInfo, EngineLines, Look, Page, TreeLine
from specctl.doctor.lossless_types import Probe
from specctl.doctor.replay_types import ReplayResult
from specctl.lint.types import Finding as LintFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One log window: its decode line and the tree's line that followed it; either may be missing.

    `at`: the line's own time stamp as text, for people. `accept_rate` and `tokens_s` as the decode line says them; they mislead
    (docs/doctor.md), which is what the checks are for.
    """

    decode: DecodeLine | None = None
    tree: TreeLine | None = None
    accept_rate: float | None = None
    tokens_s: float | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A known text of the engine that its log has (engines' log grammar), and how often; `is_note`: it goes on all the same."""

    id: str
    title: str
    remedy: str
    is_note: bool
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a log says: its windows (the newest few thousand), known texts with their count, and lines that were cut or lost.

    `engine`: the same lines as the agent folds them, for the metric audit. `whole`: the log reaches back to the start of the
    server. `text`: the newest tree line as it stands in the log, for people. `since_change`: how many windows came since somebody
    last told the running engine another mode or knob; None where the log has no such request.
    """

    windows: tuple[Pair, ...] = ()
    engine: EngineLines = field(default_factory=EngineLines)
    texts: tuple[Noted, ...] = ()
    lines: int = 0
    lost: int = 0
    whole: bool = False
    text: str | None = None
    since_change: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the engine at `at_s` (seconds of one monotonic clock): /v1/loads with /ready, and the page of /metrics."""

    at_s: float
    look: Look | None = None
    page: Page | None = None


OWN_RUN = "this load"
"""The `run` of a speed that was measured by the doctor's own load: nothing is compared with itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast a mode was at a concurrency; tokens a second are output tokens of all requests together.

    `accept_length`: as reported there, bonus included. `steps_s`: verify steps a second of one request (of the batch, where all
    requests step together), measured by counters; never derived. `tokens_per_step`: from the same counters. `run` names the
    measurement, `source` its requests (a prompt set and a length): only figures of one source are set against each other.
    """

    mode: Mode
    tokens_s: float
    concurrency: float | None = None
    accept_length: float | None = None
    accept_rate: float | None = None
    steps_s: float | None = None
    tokens_per_step: float | None = None
    run: str | None = None
    source: str | None = None
    graphs: bool | None = None
    overlap: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One request that began and ended while we looked, by its own answer: the one basis of design.md §7.

    `tokens`: completion tokens, the first of which is the prefill's. `verify_calls`: None without speculation. `decode_s`: from
    the first token to the last. `finish`: why it ended (length, stop, abort).
    """

    tokens: int
    verify_calls: int | None = None
    decode_s: float | None = None
    finish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLook:
    """One GPU at one moment, from the agent, NVML or the driver's tool; what is not told is None. Units are in the names."""

    index: int
    at_s: float = 0.0
    model: str | None = None
    busy_ratio: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    sm_clock_hz: float | None = None
    sm_clock_max_hz: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    throttles: tuple[str, ...] | None = None
    link_generation: int | None = None
    link_generation_max: int | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    xids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What is asked for, what stands on disk and what the engine says.

    `desired`: by the inventory; `deployed`: by the release on the host; `claimed`: by /server_info. `arguments`: flag → value of
    the deployed release beside what /server_info says of it, only where they differ. `knows`: which algorithms the engine's build
    knows, by the capability probe. `overlap`: whether the overlap scheduler runs; `implied`: the flags that the algo's profile
    implies. None everywhere: not looked at.
    """

    desired: Mode | None = None
    deployed: Mode | None = None
    claimed: Mode | None = None
    moved_live: bool = False
    drift: tuple[str, ...] | None = None
    arguments: Mapping[str, tuple[str, str]] | None = None
    lint: tuple[LintFinding, ...] | None = None
    knows: Mapping[str, bool] | None = None
    overlap: bool | None = None
    implied: tuple[str, ...] = ()
    metrics_enabled: bool | None = None
    serving: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything about one server.

    `mode`: what it is thought to run (claimed, else deployed, else what the figures say). `counts_root`, `counts_bonus`,
    `has_tree_line`: the profile's conventions. `started_s`: when the server started, on the observations' clock. `same_start`:
    whether it was started once only while we looked. `steady`: the mode has not changed since the start. `served` are the
    requests of a short load of our own (`--live`), `served_log` the log windows meanwhile, `served_alone`: nobody else's ran then.
    `agent_finds`: ids that the host's agent found in three audits running, of its last five minutes; None without an agent.
    `no_gpus`: the engine runs on the processor alone; `knows_xids`: the driver's faults were watched for. `probe`: what the target
    said of the engine's own tokens, `replay`: what a verify trace shows.
    """

    host: str | None = None
    server: str | None = None
    mode: Mode | None = None
    counts_root: bool | None = None
    counts_bonus: bool | None = None
    has_tree_line: bool = False
    log: Log | None = None
    observations: tuple[Observation, ...] = ()
    started_s: float | None = None
    same_start: bool | None = None
    steady: bool = False
    info: EngineInfo | None = None
    speeds: tuple[Speed, ...] = ()
    served: tuple[Served, ...] = ()
    served_alone: bool = False
    served_log: Log | None = None
    probe: Probe | None = None
    replay: ReplayResult | None = None
    agent_finds: tuple[str, ...] | None = None
    gpus: tuple[GpuLook, ...] = ()
    no_gpus: bool = False
    knows_xids: bool = False
    configuration: Configuration = field(default_factory=Configuration)
