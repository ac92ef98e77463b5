"""What a person may ask of a server from the dashboard, and how such an act talks back while it runs in its own thread."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.text import Text

from specctl.errors import BugError, SpecctlError
from specctl.rollout.gate_types import GateState
from specctl.rollout.story import headline
from specctl.tui import words

ANSWER_S = 600.0
"""A question that nobody answers for so long is answered with no: the plan is of another moment by then."""


class Deed(enum.Enum):
    """What can be done; the value is the command's own name."""

    SWITCH = "switch"
    PIN = "pin"
    UNPIN = "unpin"
    HOLD = "hold"
    RESUME = "resume"
    ROLLBACK = "rollback"

    @property
    def means(self) -> str:
        """Say in a clause what it does."""
        return _MEANS[self]


_MEANS = {
    Deed.SWITCH: "change the algo of the deployed release: drain, restart, gate",
    Deed.PIN: "keep an algo for a while, whatever the agent would decide",
    Deed.UNPIN: "let the agent decide again",
    Deed.HOLD: "let the agent act on nothing until resume",
    Deed.RESUME: "end a hold or a freeze",
    Deed.ROLLBACK: "go back to what served before: drain, restart, gate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One act on one server: `algo` of a switch; `mode`, `duration` and `reason` of a pin; `reason` of a hold."""

    deed: Deed
    host: str
    server: str
    algo: str | None = None
    mode: str | None = None
    duration: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        goal = self.algo or self.mode
        held = f" for {self.duration}" if self.duration else ""
        return f"{self.deed.value} {self.server} on {self.host}" + (f" to {goal}" if goal else "") + held


class Talk(Protocol):
    """What an act says and asks; called in the act's own thread, and implements ops' Reporter."""

    def confirm(self, plan: Sequence[Text]) -> bool:
        """Show what will be done and wait for a yes; anything else is no."""

    def undo_by(self, undo: Callable[[], None]) -> None:
        """Say how a person's interruption is brought to the act."""

    def step(self, host: str, name: str, text: str) -> None:
        """Say how a step stands."""

    def gate(self, host: str, state: GateState) -> None:
        """Show how far the load is."""

    def final(self, host: str, name: str, text: str) -> None:
        """Say something that stays."""


class Performer(Protocol):
    """Does what is wished; one thread a wish."""

    def algos(self, host: str, server: str) -> Sequence[str]:
        """Return the algos that a server can be switched to."""

    def perform(self, wish: Wish, talk: Talk) -> str:
        """Plan, confirm with `talk`, act; returns how it ended in words, raises the SpecctlError that it ended with.

        Contract: nothing is changed before `talk.confirm` has returned True.
        """


class Phase(enum.Enum):
    """How far an errand is."""

    PLANNING = "planning"
    ASKING = "asking"
    RUNNING = "running"
    DONE = "done"
    DECLINED = "declined"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Claim that nothing more will happen."""
        return self in (Phase.DONE, Phase.DECLINED, Phase.FAILED)


class Errand:
    """One wish under way in a thread of its own; the screen looks at it and answers its question. Implements Talk."""

    def __init__(self, wish: Wish, performer: Performer, *, answer_s: float = ANSWER_S) -> None:
        self.wish = wish
        self.plan: tuple[Text, ...] = ()
        self.said: tuple[tuple[str, str], ...] = ()
        self.now: tuple[str, str] | GateState | None = None
        self.end: str | None = None
        self.error: SpecctlError | None = None
        self.revision = 0
        # A person has seen how it ended.
        self.read = False
        self._phase = Phase.PLANNING
        self._performer = performer
        self._answer_s = answer_s
        self._answer: bool | None = None
        self._answered = threading.Event()
        self._undo: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"specctl-act-{wish.deed.value}", daemon=True)

    @property
    def phase(self) -> Phase:
        """Return how far it is."""
        return self._phase

    @property
    def open(self) -> bool:
        """Claim that it goes on, or that nobody has seen its end."""
        return not (self._phase.over and self.read)

    def start(self) -> None:
        """Begin to plan."""
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for its end for so long; says whether it came."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def answer(self, *, yes: bool) -> None:
        """Answer its question; only the first answer counts, and only while it asks."""
        with self._lock:
            if self._phase is Phase.ASKING and self._answer is None:
                self._answer = yes
                self._answered.set()

    def interrupt(self) -> bool:
        """Ask a running act to take itself back; says whether it can."""
        undo = self._undo
        if self._phase is not Phase.RUNNING or undo is None:
            return False
        undo()
        self.final(self.wish.host, "interrupt", "taking it back")
        return True

    def _run(self) -> None:
        try:
            self.end = self._performer.perform(self.wish, self)
            self._go(Phase.DECLINED if self._answer is False else Phase.DONE)
        except SpecctlError as error:
            self.error = error
            self._go(Phase.FAILED)
        except Exception as error:  # noqa: BLE001  # the thread's last boundary: the screen tells it, and stays
            self.error = BugError(f"a bug in specctl: {type(error).__name__}: {error}")
            self._go(Phase.FAILED)

    def _go(self, phase: Phase) -> None:
        with self._lock:
            self._phase = phase
            self.revision += 1

    def confirm(self, plan: Sequence[Text]) -> bool:
        """Show the plan and wait for an answer, at most `answer_s`."""
        self.plan = tuple(plan)
        self._go(Phase.ASKING)
        self._answered.wait(self._answer_s)
        with self._lock:
            yes = self._answer is True
            self._answer = yes
            self._phase = Phase.RUNNING if yes else Phase.DECLINED
            self.revision += 1
        return yes

    def undo_by(self, undo: Callable[[], None]) -> None:
        """Keep how a person's interruption is brought to the act."""
        self._undo = undo

    def step(self, host: str, name: str, text: str) -> None:
        """Say how a step stands."""
        del host
        self.now = (words.one_line(name), words.one_line(text))
        self.revision += 1

    def gate(self, host: str, state: GateState) -> None:
        """Show how far the load is."""
        del host
        self.now = state
        self.revision += 1

    def final(self, host: str, name: str, text: str) -> None:
        """Say something that stays."""
        del host
        self.said = (*self.said, (words.one_line(name), words.one_line(text)))
        self.now = None
        self.revision += 1

    @property
    def brief(self) -> str:
        """Say in a few words how it stands."""
        now = self.now
        if self._phase is not Phase.RUNNING:
            return f"{self.wish}: {self._phase.value}{' (a shows it)' if self._phase.over else ''}"
        said = now if isinstance(now, tuple) else None if now is None else ("", headline(now))
        last = said or (self.said[-1] if self.said else ("", "running"))
        return f"{self.wish}: {' '.join(part for part in last if part)}"
