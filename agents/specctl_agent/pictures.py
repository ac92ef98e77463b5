"""What the loop publishes once a tick, for whoever asks in between: values, made by the loop alone and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.sample.engine import EngineInfo, EngineLoad, EngineSample
from specctl.control.sample.gpu import NvmlSample
from specctl.control.sample.host import HostSample
from specctl.control.window import Figures
from specctl.fleet.types import AgentMode
from specctl_agent.samplers.runner import Health

# From the least to the most that an agent may do.
RANKS = (AgentMode.OBSERVE, AgentMode.ADVISE, AgentMode.ACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchCount:
    """How often the agent went from one mode to another in one way, with one end (done, refused, reverted, broken)."""

    old: str
    new: str
    means: str
    result: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What is decided now: as `hold`, `set ddtree:tree_budget=16` or `switch dflash`, its grounds, and since when (monotonic)."""

    text: str
    rule: str
    reason: str
    since_s: float
    at: str
    target: Mode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPicture:
    """One server as the agent sees it; None is not known.

    `conduct`: what the agent may do, by the inventory or by order; `allowed`: what the inventory allows at most. `modes`: those
    that it can run. `told_at`: when the engine was told a mode, by the newest record of that that the agent has read. `table`: what
    the engine follows by itself, `mode` being its row of now. `acting`: the switch under way, in words. `mode_s`, `switches` and
    `lost_s` count since the agent's state began. `load`: the engine's last answer; `now`: what the last seconds say. `history`:
    (running, waiting, tokens a second, accept length) of the last ticks. `grounds`: what is decided now as its journal would have
    it, with the figures of now.
    """

    server: str
    conduct: AgentMode
    allowed: AgentMode = AgentMode.ACT
    modes: tuple[Mode, ...] = ()
    mode: Mode | None = None
    told_at: str | None = None
    table: str | None = None
    sample: EngineSample | None = None
    sample_age_s: float | None = None
    load: EngineLoad | None = None
    now: Figures | None = None
    figures: Figures | None = None
    info: EngineInfo | None = None
    decided: Decided | None = None
    grounds: Mapping[str, object] | None = None
    acting: str | None = None
    held: str | None = None
    pinned: str | None = None
    pin_left_s: float | None = None
    frozen: str | None = None
    findings: tuple[str, ...] = ()
    gain_ratio: float | None = None
    mode_s: Mapping[str, float] = field(default_factory=dict)
    switches: tuple[SwitchCount, ...] = ()
    lost_s: float = 0.0
    history: tuple[tuple[int | None, int | None, float | None, float | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The whole host at one tick (`at_s` monotonic); `troubles` by subject, `collectors` by sampler."""

    at_s: float
    version: str
    ticks: int = 0
    late_ticks: int = 0
    tick_s: float = 0.0
    started_wall_s: float = 0.0
    nvml: NvmlSample | None = None
    nvml_age_s: float | None = None
    host: HostSample | None = None
    host_age_s: float | None = None
    collectors: Mapping[str, tuple[Health, float | None]] = field(default_factory=dict)
    servers: tuple[ServerPicture, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)
    turned_away: int = 0
    decisions: int = 0
