"""How the agent changes what a server runs: one port, a cost class each; what refuses has changed nothing.

An actuator acts on one server. It never decides, and it never judges whether the gain showed: that is the loop's affair.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from specctl.control.mode import Mode
from specctl.rollout.proof import Proof

NOTHING: Mapping[str, object] = {}


class Cost(enum.Enum):
    """What a switch costs: nothing (the engine takes it over HTTP), seconds (a second engine wakes up), a whole reload.

    Nothing is of class STANDBY yet; its place is here.
    """

    LIVE = "live"
    STANDBY = "standby"
    RESTART = "restart"


class IntentError(Exception):
    """A step cannot be written down, so it may not be taken; carries why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One switch under way: its id, why it is made, and where each step is written down before it is taken.

    `mark` must have the step on the disk when it returns, and raises IntentError where it has not: whoever finds the errand after a
    crash knows from it what to mend.
    """

    id: str
    reason: str
    mark: Callable[[str, Mapping[str, object]], None]

    def note(self, step: str, facts: Mapping[str, object] = NOTHING) -> None:
        """Write down a step that only undoes, or tells of what is done: a disk that refuses keeps nobody from those."""
        with contextlib.suppress(IntentError):
            self.mark(step, facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The engine runs the new mode, as far as it says; `took_s` is how long the server was away or slowed."""

    took_s: float
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It cannot be done, or must not be; nothing was changed."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """It was tried and did not end as asked; `serving` is what runs instead (None: not known, or nothing does)."""

    reason: str
    serving: Mode | None = None


Outcome = Moved | Refused | Broken


class Actuator(Protocol):
    """One way to change the mode of a server. Contract: returns within its own limits, raises nothing for what a peer does."""

    @property
    def cost(self) -> Cost:
        """Return the class of what it costs."""

    def can(self, old: Mode, new: Mode) -> str | None:
        """Return why it cannot go from one mode to the other, or None where it can; changes nothing."""

    def switch(self, old: Mode, new: Mode, errand: Errand) -> Outcome:
        """Go from one mode to the other."""

    def confirm(self, new: Mode) -> Proof:
        """Say whether the mode is proven live, only claimed, or refuted."""

    def revert(self, old: Mode, errand: Errand) -> Outcome:
        """Go back to a mode that ran before, by whatever this actuator left behind, also after a crash in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A server that gets no new requests: what must be known to bring it back."""

    by: str
    facts: Mapping[str, object] = field(default_factory=dict)


class Doorkeeper(Protocol):
    """Takes requests off a server and brings them back. Contract: bounded in time; raises DoorError, and says what holds then."""

    def take_off(self, mark: Callable[[Taken], None]) -> Taken:
        """Let no new request come; `mark` is called, and has returned, before anything is changed."""

    def bring_back(self, taken: Taken) -> None:
        """Let requests come again; a server that has them already is left alone."""


class DoorError(Exception):
    """Requests could not be taken off the server, or not be brought back; carries why in one clause."""
