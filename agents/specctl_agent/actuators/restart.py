"""The way by restart: requests are taken off the server, the root-owned performer does the operator's own act, requests come back.

The agent itself starts and stops nothing. A switch is never worth a request: one that cannot be drained is given up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from specctl.control.mode import Mode
from specctl.control.mode import mode as mode_of
from specctl.fleet.types import ServiceManager
from specctl.ops import engine_live
from specctl.rollout import reading
from specctl.rollout.proof import Claimed, Proof, Proven
from specctl.rollout.server_note import ServerNote
from specctl_agent import request as requests
from specctl_agent.actuators import Broken, Cost, DoorError, Doorkeeper, Errand, Moved, Outcome, Refused, Taken
from specctl_agent.request import Request, Result

POLL_S = 0.5
# An engine that says 0 may have a request on its way to it that the router sent just before it let go.
QUIET_S = 1.0
MARGIN_S = 120.0
NO_RELEASE = "no release on this host starts with {mode}: deploy one that does"
TAKEN, REQUESTED, BACK = "taken off", "requested", "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where one server's restarts are asked for: its note, its agent folder, the requests' folder, the present release and boot."""

    note: ServerNote
    folder: Path
    requests: Path
    release: Callable[[], str | None]
    boot: str
    clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class Restart:
    """Restarts one server into another mode. `patient`: without a door to close, requests are cut off at the act's own limit."""

    spot: Spot
    engine: engine_live.Engine
    door: Doorkeeper
    stopping: threading.Event
    patient: bool = True
    poll_s: float = POLL_S
    quiet_s: float = QUIET_S
    patience_s: float = requests.FRESH_S
    _result: Result | None = None

    @property
    def cost(self) -> Cost:
        """Return its class."""
        return Cost.RESTART

    def can(self, old: Mode, new: Mode) -> str | None:
        """Look whether requests can be taken off, and whether a release on the host starts with the mode."""
        note = self.spot.note
        if note.host.manager is not ServiceManager.SYSTEMD:
            return "only under systemd is there a performer for restarts"
        if not note.server.agent.drains:
            return (
                "a restart would cut requests off: give agent.gateway, agent.hooks or agent.outage_ok in the inventory"
            )
        if old == new:
            return f"{new} runs already"
        if self._release(new) is None:
            return NO_RELEASE.format(mode=new)
        return None

    def _release(self, mode: Mode) -> str | None:
        """Return the release that starts with a mode: the present one, else the newest."""
        now = self.spot.release()
        known = self.spot.note.releases
        order = sorted(known, key=lambda name: (name == now, int(name) if name.isdigit() else -1), reverse=True)
        return next((name for name in order if known[name].knobs.get(mode.algo) == dict(mode.knobs)), None)

    def switch(self, old: Mode, new: Mode, errand: Errand) -> Outcome:
        """Drain, ask, wait, bring back."""
        reason = self.can(old, new)
        return self._go(new, errand) if reason is None else Refused(reason=reason)

    def _go(self, new: Mode, errand: Errand) -> Outcome:
        release = self._release(new)
        if release is None:
            return Refused(reason=NO_RELEASE.format(mode=new))
        taken: list[Taken] = []

        def mark(found: Taken) -> None:
            errand.mark(TAKEN, {"by": found.by, "facts": dict(found.facts)})
            taken.append(found)

        try:
            self.door.take_off(mark)
        except DoorError as error:
            return self._again_open(taken, errand, Refused(reason=str(error)))
        busy = self._busy_until_idle()
        if busy is not None:
            return self._again_open(taken, errand, Refused(reason=busy))
        return self._performed(release, new, errand, taken)

    def _busy_until_idle(self) -> str | None:
        """Wait until the engine has no request left; return why it is given up, or None."""
        deadline = time.monotonic() + self.spot.note.server.limits.drain_s
        quiet_since: float | None = None
        while True:
            running = self.engine.running_requests()
            now = time.monotonic()
            quiet_since = (quiet_since or now) if running == 0 else None
            if quiet_since is not None and now - quiet_since >= self.quiet_s:
                return None
            if now > deadline:
                if not self.patient:
                    return None
                left = "an unknown number of" if running is None else running
                return f"{left} requests still run after {self.spot.note.server.limits.drain_s:.0f} s"
            if self.stopping.wait(min(self.poll_s, self.quiet_s)):
                return "the agent is stopping"

    def _performed(self, release: str, new: Mode, errand: Errand, taken: list[Taken]) -> Outcome:
        """Ask the performer and wait for its answer, however long a load and the way back may take."""
        wanted = Request(
            id=errand.id,
            server=self.spot.note.server.name,
            kind=requests.SWITCH,
            reason=errand.reason[: requests.REASON_CHARACTERS],
            boot=self.spot.boot,
            at_s=self.spot.clock(),
            release=release,
            algo=new.algo,
        )
        errand.mark(REQUESTED, {"release": release, "algo": new.algo})
        began = time.monotonic()
        try:
            requests.file_request(self.spot.requests, wanted)
        except OSError as error:
            return self._again_open(taken, errand, Refused(reason=f"the request cannot be written: {error.strerror}"))
        return self.await_result(errand, taken, began)

    def await_result(self, errand: Errand, taken: list[Taken], began: float) -> Outcome:
        """Wait for the performer's answer and bring the server back; also after a restart of the agent in the middle."""
        limits = self.spot.note.server.limits
        deadline = began + 2 * (limits.load_s + limits.drain_s + limits.stop_s) + limits.smoke_s + MARGIN_S
        while True:
            working = requests.at_work(self.spot.folder)
            found = requests.read_result(self.spot.folder, errand.id)
            if found is not None and found.outcome != requests.TAKEN_UP:
                return self._ended(found, taken, errand, time.monotonic() - began)
            if found is not None and not working:
                return Broken(reason="the performer ended without an answer; the guard takes its act back")
            late = time.monotonic() > began + self.patience_s
            if late and requests.withdraw(self.spot.requests, errand.id):
                reason = "the performer did not take the request: systemctl status specctl-agent-actuate.path"
                return self._again_open(taken, errand, Refused(reason=reason))
            if time.monotonic() > deadline:
                return Broken(reason="the performer gave no answer within its limits")
            if self.stopping.wait(self.poll_s):
                return Broken(reason="the agent is stopping; the performer goes on by itself")

    def _ended(self, found: Result, taken: list[Taken], errand: Errand, took_s: float) -> Outcome:
        self._result = found
        if found.done:
            return self._again_open(taken, errand, Moved(took_s=took_s, evidence=found.evidence))
        reason = found.reason or found.outcome
        if found.untouched:
            return self._again_open(taken, errand, Refused(reason=reason))
        serving = self._mode(found.serving)
        if found.serving is None:
            return Broken(reason=reason)  # Nothing serves: nobody must be sent there.
        return self._again_open(taken, errand, Broken(reason=reason, serving=serving))

    def _mode(self, serving: tuple[str, str] | None) -> Mode | None:
        if serving is None:
            return None
        known = self.spot.note.releases.get(serving[0])
        knobs = known.knobs.get(serving[1]) if known is not None else None
        try:
            return None if knobs is None else mode_of(serving[1], knobs)
        except ValueError:
            return None

    def _again_open(self, taken: list[Taken], errand: Errand, outcome: Outcome) -> Outcome:
        """Let requests come again; where that fails, say so beside what came of the switch."""
        if not taken:
            return outcome
        try:
            self.door.bring_back(taken[-1])
        except DoorError as error:
            serving = outcome.serving if isinstance(outcome, Broken) else None
            said = f"{outcome.reason}; " if not isinstance(outcome, Moved) else ""
            return Broken(reason=f"{said}requests do not come back: {error}", serving=serving)
        errand.note(BACK)
        return outcome

    def reopen(self, taken: Taken, errand: Errand) -> str | None:
        """Let requests come again after a crash in the middle; return why they do not, or None."""
        outcome = self._again_open([taken], errand, Moved(took_s=0.0))
        return outcome.reason if isinstance(outcome, Broken) else None

    def confirm(self, new: Mode) -> Proof:
        """Say what the act's own proof said."""
        del new
        found = self._result
        if found is None:
            return Claimed(missing=("no answer of the performer is there",))
        if found.done and found.proof == "proven":
            return Proven(evidence=found.evidence)
        return Claimed(missing=(found.reason or "the act proved nothing",), evidence=found.evidence)

    def revert(self, old: Mode, errand: Errand) -> Outcome:
        """Go back by another restart; an act that failed has gone back by itself."""
        return self._go(old, errand)


def taken_of(fields: Mapping[str, object]) -> Taken:
    """Read what a mark of TAKEN kept."""
    return Taken(by=str(fields.get("by")), facts=reading.mapping(fields.get("facts")))
