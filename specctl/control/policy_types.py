"""What `policy.decide` is given and what it answers: values only.

Times are ages in seconds that `policy.advance` counts by the monotonic clock, so that a jump of the wall clock moves nothing; the
wall clock is read for the hour of the week alone.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from specctl.control.limits import QUICK_S
from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.rates import Rates
from specctl.control.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """One instant by two clocks: `mono_s` never jumps but begins anew with each boot `boot`; `wall_s` is Unix time and may jump."""

    mono_s: float
    wall_s: float
    boot: str = ""


class Means(enum.Enum):
    """How a change is carried out."""

    LIVE = "live"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a change takes: the seconds in which the server serves nothing (drain and load, from this host's own past), and how.

    `weight`: what a second of it costs against a second of serving; 1.0 where what arrives meanwhile is lost or waits unseen,
    less where neighbours take it up in part, more where it overloads them.
    """

    means: Means
    seconds: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not (self.seconds >= 0 and self.weight >= 0):
            raise ValueError("a price has seconds >= 0 and a weight >= 0")

    @property
    def quick(self) -> bool:
        """Claim that the change takes no longer than the time between two samples."""
        return self.seconds <= QUICK_S


class Costs(Protocol):
    """What each change of mode takes on this server."""

    def price(self, old: Mode, new: Mode) -> Price | None:
        """Return the price of going from one mode to another (not the same); None where it cannot be done or is not known."""
        ...


class History(Protocol):
    """What this server's load was at each hour of the week (0 is Monday 00:00 UTC), from its concurrency profile."""

    def seconds(self, hour_of_week: int) -> Mapping[float, float] | None:
        """Return seconds spent at each concurrency, 0 included, in that hour over the weeks; None where it was never watched."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A person's order to run one mode for a while; without knobs it names the algo alone. `left_s` <= 0: it has run out."""

    mode: Mode
    left_s: float
    reason: str = ""
    who: str = ""

    def holds(self, mode: Mode) -> bool:
        """Claim that a mode is what the pin asks for."""
        return mode == self.mode or (not self.mode.knobs and mode.algo == self.mode.algo)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that is known of one server at one moment; None is unknown, and unknown never leads to an act.

    `mode`: what runs, proven. `concurrency`: requests running + waiting now. `age_s`: of the oldest input. `modes`: those that this
    server could be in, `mode` among them. `tokens_s`: measured output tokens a second of decoding in this mode, lately.
    `findings`: contradictions that the metric audit found. `gpu_troubles`: GPUs that throttle, report XIDs or are lost.
    `lease_holder`: who deploys. `adapts_itself`: the engine changes its own speculation. `refused`: means that this server may not
    use, and why. `history`: None where there is none. `hold`: why nothing may be done until somebody resumes.
    """

    mode: Mode | None
    concurrency: float | None
    rates: Rates | None
    costs: Costs
    modes: tuple[Mode, ...]
    objective: Objective = field(default_factory=Objective)
    history: History | None = None
    age_s: float | None = 0.0
    tokens_s: float | None = None
    findings: tuple[str, ...] = ()
    gpu_troubles: tuple[str, ...] = ()
    lease_known: bool = True
    lease_holder: str | None = None
    adapts_itself: bool | None = False
    refused: Mapping[Means, str] = field(default_factory=dict)
    pin: Pin | None = None
    hold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """Why: the rule's id, the reason in words, the figures it was taken from, and what would have had to differ."""

    rule: str
    reason: str
    inputs: Mapping[str, float | str | None] = field(default_factory=dict)
    otherwise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Stay. `until_s`: under the same input no other answer comes before so many seconds; None: not known, ask again."""

    why: Grounds
    until_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKnobs:
    """Set knobs of the algo that runs, live: the engine takes the change over HTTP."""

    mode: Mode
    price: Price
    why: Grounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchAlgo:
    """Go to another mode: another algo, or knobs that take a restart."""

    mode: Mode
    price: Price
    why: Grounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTable:
    """Give the engine a table of modes, which it follows at every step; None: have it follow none, but run its one mode."""

    table: Table | None
    why: Grounds


Decision = Hold | SetKnobs | SwitchAlgo
Act = SetKnobs | SwitchAlgo
