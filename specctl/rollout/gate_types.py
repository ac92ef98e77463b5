"""The values of the health gate: what it is told at the start, what it knows at a moment, and its verdicts."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from specctl.engines._log_types import LogGrammar, Phase
from specctl.rollout.loadlog import Hit, LogScan

GRACE_S = 6.0  # the engine sleeps 5 s between a failure and its diagnostics: the true cause may come until then
SETTLE_S = 0.5  # the journal may bring a dead process's last lines after its exit is seen

__all__ = [
    "FINAL",
    "GRACE_S",
    "SETTLE_S",
    "Dead",
    "Failed",
    "Figures",
    "GateSpec",
    "GateState",
    "How",
    "Loading",
    "PastLoad",
    "Phase",
    "PhaseSpan",
    "Ready",
    "Signal",
    "Slow",
    "Stalled",
    "TimedOut",
    "Verdict",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """A phase of this start: when it began, in seconds since the start, and how long it took (None: it goes on)."""

    phase: Phase
    began_s: float
    took_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastLoad:
    """An earlier load of the same server on the same host: start to ready, and its phases where they were recorded."""

    total_s: float
    phases: tuple[PhaseSpan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """All that the gate must know of a start before it begins.

    `started_at_s` is on the same clock as the observations. `invocation` and `restarts` are what the service manager said right
    after the start; None: the first observation that says them pins them. `target_bytes`, `draft_bytes`: expected size of the
    weights, None: not known. `past_loads`: newest last.
    """

    grammar: LogGrammar
    started_at_s: float
    load_s: float
    stall_s: float
    invocation: str | None = None
    restarts: int | None = None
    port: int | None = None
    has_draft: bool = False
    target_bytes: int | None = None
    draft_bytes: int | None = None
    past_loads: tuple[PastLoad, ...] = ()
    grace_s: float = GRACE_S
    settle_s: float = SETTLE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One thing that moves while an engine loads: its last value (None: never seen) and when it last moved.

    `mark` is the value at that moment; a signal moves when it leaves its mark by more than noise.
    """

    name: str
    value: float | None
    mark: float | None
    moved_at_s: float

    def __str__(self) -> str:
        return f"{self.name} {_quantity(self.name, self.value)}"


def _quantity(name: str, value: float | None) -> str:
    if value is None:
        return "—"
    if name in {"memory", "GPU memory", "disk reads"}:
        return f"{value / 1e9:.1f} GB" if abs(value) >= 1e9 else f"{value / 1e6:.0f} MB"
    return f"{value:.1f} s" if name == "CPU time" else f"{value:.0f}"


class How(enum.Enum):
    """How death shows."""

    GONE = "process gone"
    INVOCATION = "restarted: invocation changed"
    RESTARTS = "restarted: restart counter moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """It loads; nothing is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """It loads and moves, but longer than it ever took on this host; never a reason to end it before the deadline."""

    usual_s: float
    over_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Its own port answered /ready with 200."""

    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """The process is gone and its log names no reason; `exit_status` as a shell counts, None: not known."""

    how: How
    exit_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The engine or the port told why this start fails: id, title, the lines that say so, what to do."""

    fatal: str
    title: str
    cause: tuple[str, ...]
    remedy: str
    exit_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """None of the watched signals moved for so long."""

    for_s: float
    watched: tuple[Signal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The deadline passed; `moving` names the signals that still moved."""

    after_s: float
    phase: Phase
    moving: tuple[str, ...] = ()


Verdict = Loading | Slow | Ready | Dead | Failed | Stalled | TimedOut
FINAL = (Ready, Dead, Failed, Stalled, TimedOut)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of the server's processes at one moment; None: not known."""

    rss_bytes: int | None = None
    read_bytes: int | None = None
    gpu_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """What the gate knows.

    For people and records: `phase`, `progress` (0 to 1 of the phase, None: not known), `detail`, `elapsed_s`, `eta_s` (None: not
    known), `phases`, `verdict`, `notes`, `tail` (the log's last lines). The rest is the fold's own memory.
    """

    at_s: float
    elapsed_s: float
    verdict: Verdict
    phases: tuple[PhaseSpan, ...]
    signals: tuple[Signal, ...]
    progress: float | None = None
    detail: str | None = None
    eta_s: float | None = None
    scan: LogScan = field(default_factory=LogScan)
    base: Figures = field(default_factory=Figures)
    last: Figures = field(default_factory=Figures)
    invocation: str | None = None
    restarts: int | None = None
    processes: int | None = None
    failing_since_s: float | None = None
    gone: Dead | None = None
    gone_since_s: float | None = None

    @property
    def phase(self) -> Phase:
        """Return the phase that goes on."""
        return self.phases[-1].phase

    @property
    def is_final(self) -> bool:
        """Claim that the verdict will not change any more."""
        return isinstance(self.verdict, FINAL)

    @property
    def notes(self) -> tuple[Hit, ...]:
        """Return known texts worth a word that fail nothing."""
        return self.scan.notes

    @property
    def tail(self) -> tuple[str, ...]:
        """Return the log's last lines, fit for a terminal; arguments and prompts are left out."""
        return self.scan.tail

    @property
    def quiet_s(self) -> float:
        """Return for how long no signal moved."""
        return max(self.at_s - max(signal.moved_at_s for signal in self.signals), 0.0)
