"""What one server on one host looks like now: the value that `specctl status` and the dashboard show.

Pure. Built by sight_agent.py, sight_facts.py and sight_engine.py from what a host answered. Every figure carries its age and who
told it; what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from specctl.algos import ALGOS
from specctl.control.mode import Mode
from specctl.control.sample.engine import STALE_AFTER_S
from specctl.control.sample.gpu import Throttle
from specctl.rollout.facts import Lease
from specctl.rollout.guarded import Guard

T = TypeVar("T")

GPU_STALE_AFTER_S = 15.0
"""Figures of GPUs move slowly, and a host without an agent is asked for them only every few seconds."""


class Source(StrEnum):
    """Who told a figure: the agent on the host, the engine itself, or specctl's session there."""

    AGENT = "agent"
    ENGINE = "engine"
    FACTS = "facts"


class State(StrEnum):
    """The states that are named here; a unit's own word (`activating` …) and `failed (STATUS)` come beside them."""

    READY = "ready"
    NOT_READY = "not ready"
    LOADING = "loading"
    FROZEN = "frozen"
    STOPPED = "stopped"
    FAILED = "failed"
    NOT_DEPLOYED = "not deployed"
    PORT_TAKEN = "port taken"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Generic[T]):
    """A figure, the seconds since it was true (None: nobody knows), and who told it."""

    value: T
    age_s: float | None
    source: Source

    @property
    def stale(self) -> bool:
        """Claim that it may not be shown as if it were of now."""
        return self.age_s is None or self.age_s > STALE_AFTER_S

    def later(self, by_s: float) -> Told[T]:
        """Return the same figure when it is older by so much."""
        return Told(value=self.value, age_s=None if self.age_s is None else self.age_s + by_s, source=self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSight:
    """One GPU; its figures are of one moment, `age_s` ago. `throttles`: the driver's reasons; `slowing`: those that are a fault."""

    index: int
    age_s: float | None
    source: Source
    uuid: str | None = None
    model: str | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    busy_ratio: float | None = None
    temperature_c: float | None = None
    sm_clock_hz: int | None = None
    sm_clock_max_hz: int | None = None
    memory_clock_hz: int | None = None
    throttles: tuple[Throttle, ...] | None = None
    slowing: tuple[Throttle, ...] | None = None

    @property
    def stale(self) -> bool:
        """Claim that its figures may not be shown as if they were of now."""
        return self.age_s is None or self.age_s > GPU_STALE_AFTER_S

    def later(self, by_s: float) -> GpuSight:
        """Return the same when it is older by so much."""
        return self if self.age_s is None else replace(self, age_s=self.age_s + by_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """A load under way: `progress` is 0 to 1 of the phase; `eta_s` seconds until ready, by this host's past loads."""

    phase: str
    elapsed_s: float | None = None
    progress: float | None = None
    detail: str | None = None
    eta_s: float | None = None
    fatal: str | None = None

    def later(self, by_s: float) -> Loading:
        """Return the same when it goes on for so much longer."""
        elapsed, eta = self.elapsed_s, self.eta_s
        return replace(
            self,
            elapsed_s=None if elapsed is None else elapsed + by_s,
            eta_s=None if eta is None else max(0.0, eta - by_s),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the agent decided last: `hold`, `set ddtree:tree_budget=16` or `switch dflash`; `for_s`: for how long it stands."""

    text: str
    rule: str | None = None
    reason: str | None = None
    at: str | None = None
    for_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSight:
    """The agent's own state beside a server: what it may do (`observe`, `advise`, `act`), and what stands against its acting."""

    conduct: str | None = None
    version: str | None = None
    decision: Decided | None = None
    acting: str | None = None
    pinned: str | None = None
    pin_left_s: float | None = None
    held: str | None = None
    frozen: str | None = None
    findings: tuple[str, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)

    def later(self, by_s: float) -> AgentSight:
        """Return the same when its words are older by so much."""
        decision, left = self.decision, self.pin_left_s
        if decision is not None and decision.for_s is not None:
            decision = replace(decision, for_s=decision.for_s + by_s)
        return replace(self, decision=decision, pin_left_s=None if left is None else max(0.0, left - by_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAct:
    """The newest act on record: `at` is the host's clock (ISO 8601), `age_s` seconds since then by that same clock."""

    act: str
    at: str | None = None
    age_s: float | None = None
    who: str | None = None
    result: str | None = None

    def later(self, by_s: float) -> LastAct:
        """Return the same when it is longer ago by so much."""
        return self if self.age_s is None else replace(self, age_s=self.age_s + by_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One server on one host as it looks now.

    `desired`: what the inventory says; `deployed`: what the host is set to start; `live`: what runs, by the best witness. `live_by`
    and `live_at`: who told the running engine a mode by the newest record of that, and when (ISO 8601, the host's clock). `owned`:
    what the agent may choose (`algo`, names of knobs); all else is the inventory's. `age_s`: seconds since the host last answered;
    None where it never did. `reason`: why it cannot be reached, or is not known.
    """

    host: str
    server: str
    state: str
    groups: tuple[str, ...] = ()
    reason: str | None = None
    hint: str | None = None
    desired: Mode | None = None
    deployed: Mode | None = None
    live: Mode | None = None
    live_by: str | None = None
    live_at: str | None = None
    release: str | None = None
    proven: bool | None = None
    owned: tuple[str, ...] = ()
    ready: bool | None = None
    loading: Loading | None = None
    running: Told[int] | None = None
    waiting: Told[int] | None = None
    tokens_per_s: Told[float] | None = None
    accept_length: Told[float] | None = None
    kv_ratio: Told[float] | None = None
    gpus: tuple[GpuSight, ...] | None = None
    gpu_trouble: str | None = None
    agent: AgentSight | None = None
    agent_trouble: str | None = None
    drift: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lease: Lease | None = None
    guard: Guard | None = None
    last: LastAct | None = None
    age_s: float | None = None

    @property
    def mode(self) -> Mode | None:
        """Return what runs or, where nobody knows, what the host is set to start."""
        return self.live or self.deployed

    @property
    def figures_age_s(self) -> float | None:
        """Return the age of the oldest of the engine's figures that are shown; None where there is none, or one of unknown age."""
        ages = [told.age_s for told in (self.running, self.waiting) if told is not None]
        known = [age for age in ages if age is not None]
        return max(known) if known and len(known) == len(ages) else None

    @property
    def slowed(self) -> tuple[GpuSight, ...]:
        """Return the GPUs that a fault of cooling or supply makes slower."""
        return tuple(gpu for gpu in self.gpus or () if gpu.slowing)

    def later(self, by_s: float) -> Sight:
        """Return the same sight when it is older by so much: every age grows."""
        if by_s <= 0:
            return self
        return replace(
            self,
            running=None if self.running is None else self.running.later(by_s),
            waiting=None if self.waiting is None else self.waiting.later(by_s),
            tokens_per_s=None if self.tokens_per_s is None else self.tokens_per_s.later(by_s),
            accept_length=None if self.accept_length is None else self.accept_length.later(by_s),
            kv_ratio=None if self.kv_ratio is None else self.kv_ratio.later(by_s),
            gpus=None if self.gpus is None else tuple(gpu.later(by_s) for gpu in self.gpus),
            loading=None if self.loading is None else self.loading.later(by_s),
            agent=None if self.agent is None else self.agent.later(by_s),
            guard=None if self.guard is None else self.guard.later(by_s),
            last=None if self.last is None else self.last.later(by_s),
            age_s=None if self.age_s is None else self.age_s + by_s,
        )


def knobs_of(mode: Mode) -> Mapping[str, int]:
    """Return a mode's knobs in the order in which its algo names them."""
    told = dict(mode.knobs)
    known = [knob.name for knob in ALGOS[mode.algo].knobs] if mode.algo in ALGOS else []
    return {name: told[name] for name in [*(name for name in known if name in told), *sorted(set(told) - set(known))]}


def mode_of(algo: str, knobs: Mapping[str, int]) -> Mode:
    """Return the mode that a host names, whether or not this specctl knows its algo and bounds."""
    return Mode(algo, tuple(sorted(knobs.items())))
