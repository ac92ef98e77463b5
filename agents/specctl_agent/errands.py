"""Run one switch of a server at a time, in a thread of its own: a reload takes minutes, and the loop goes on meanwhile."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.table import Table
from specctl.fleet.types import AgentMode
from specctl_agent.acting import Acting, Report
from specctl_agent.actuators import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of one errand: from which mode to which, at what cost (None: something that an earlier agent had left open).

    `table`: the engine was to follow another table, or none, from then on: `given`.
    """

    report: Report
    table: bool = False
    given: Table | None = None
    old: Mode | None = None
    new: Mode | None = None
    cost: Cost | None = None


@dataclass(slots=True)
class Errands:
    """The errands of one server; all methods are for the loop, and none waits but `join`."""

    acting: Acting
    _done: queue.SimpleQueue[Done] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None
    _what: str = ""
    _began_s: float = 0.0

    @property
    def busy(self) -> str | None:
        """Return the errand under way, in words: until what came of it has been collected."""
        return None if self._thread is None else f"{self._what}, for {time.monotonic() - self._began_s:.0f} s"

    def send(self, cost: Cost, old: Mode, new: Mode, reason: str, *, conduct: AgentMode, held: str | None) -> None:
        """Begin a switch."""

        def work() -> None:
            report = self.acting.carry_out(cost, old, new, reason, conduct=conduct, held=held)
            self._done.put(Done(report=report, old=old, new=new, cost=cost))

        self._begin(f"{old} → {new} by {cost.value}", work)

    def send_table(self, table: Table | None, base: Mode, *, conduct: AgentMode, held: str | None) -> None:
        """Begin to have the engine follow a table; None: none, but run `base`."""

        def work() -> None:
            report = self.acting.give_table(table, base, conduct=conduct, held=held)
            self._done.put(Done(report=report, table=True, given=table))

        self._begin("ending the table" if table is None else f"giving a table: {table}", work)

    def mend(self, running: Mode | None) -> bool:
        """Begin to bring to its end what was left open; returns whether there is anything."""
        if not self.acting.intents.open_ones(self.acting.spot.note.server.name):
            return False

        def work() -> None:
            for report in self.acting.mend(running):
                self._done.put(Done(report=report))

        self._begin("mending what was left open", work)
        return True

    def collect(self) -> tuple[Done, ...]:
        """Return what came of the errand once it has ended; nothing before."""
        if self._thread is None or self._thread.is_alive():
            return ()
        self._thread = None
        found = []
        while True:
            try:
                found.append(self._done.get_nowait())
            except queue.Empty:
                return tuple(found)

    def join(self, timeout_s: float) -> bool:
        """Wait for the errand under way, bounded; returns whether it ended. The intent journal knows of one that did not."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _begin(self, what: str, work: Callable[[], None]) -> None:
        assert self.busy is None, "one errand at a time"
        self._what, self._began_s = what, time.monotonic()
        self._thread = threading.Thread(target=work, name=f"errand-{self.acting.spot.note.server.name}", daemon=True)
        self._thread.start()
