"""Carry out a decision on one server: allowed, written down, done, confirmed or taken back; mend what a crash left half done."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from specctl.control.mode import Mode
from specctl.control.table import Table
from specctl.fleet.types import AgentMode
from specctl.host import lease
from specctl.host.wire import OpError
from specctl.ops import engine_live
from specctl.rollout.agent_moves import WHO
from specctl.rollout.proof import Claimed, Proof, Proven, Refuted
from specctl_agent import request as requests
from specctl_agent.actuators import (
    Actuator,
    Broken,
    Cost,
    DoorError,
    Errand,
    IntentError,
    Moved,
    Outcome,
    Refused,
    Taken,
)
from specctl_agent.actuators.live import Live
from specctl_agent.actuators.restart import BACK, REQUESTED, TAKEN, Restart, Spot, taken_of
from specctl_agent.intent import Intent, Intents

EVIDENCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a decision. `mode`: what runs now (None: not known). `result`: done, refused, reverted, broken, interrupted."""

    result: str
    reason: str
    mode: Mode | None
    took_s: float = 0.0
    proof: Proof | None = None

    @property
    def done(self) -> bool:
        """Claim that the new mode runs."""
        return self.result == DONE


DONE, REFUSED, REVERTED, BROKEN, INTERRUPTED = "done", "refused", "reverted", "broken", "interrupted"


def lease_holder(folder: Path) -> str | None:
    """Return who holds a server now, None where it is free; a lease that cannot be read is held by somebody."""
    try:
        found = lease.status(str(folder))
    except (OpError, OSError) as error:
        return f"somebody ({error})"
    return None if found is None else found.owner


@dataclass(slots=True)
class Acting:
    """Acts on one server, one errand at a time. `stopping` is the agent's: what it interrupts is mended at the next start."""

    spot: Spot
    live: Live
    restart: Restart
    intents: Intents
    stopping: threading.Event
    holder: Callable[[], str | None]

    def refusal(self, conduct: AgentMode, held: str | None) -> str | None:
        """Return why the agent may not act on this server now, or None; the inventory's mode is the most that it may."""
        said = self.spot.note.server.agent.mode
        if said is not AgentMode.ACT:
            return f"the inventory says agent.mode: {said.value}"
        if conduct is not AgentMode.ACT:
            return f"the agent was told: {conduct.value}"
        if held is not None:
            return f"the agent is held: {held}"
        holder = self.holder()
        if holder is not None and holder != WHO:
            return f"{holder} holds the server"
        return None

    def actuator(self, cost: Cost) -> Actuator | None:
        """Return what acts at a cost; None where nothing does."""
        match cost:
            case Cost.LIVE:
                return self.live
            case Cost.RESTART:
                return self.restart
            case Cost.STANDBY:
                return None
            case _:
                assert_never(cost)

    def can(self, cost: Cost, old: Mode, new: Mode) -> str | None:
        """Return why a change cannot be made at a cost, or None where it can; for the loop, before it decides."""
        found = self.actuator(cost)
        return f"nothing acts by {cost.value} yet" if found is None else found.can(old, new)

    def carry_out(
        self, cost: Cost, old: Mode, new: Mode, reason: str, *, conduct: AgentMode, held: str | None = None
    ) -> Report:
        """Do a switch to its end; never raises for what a peer or a disk does."""
        why = self.refusal(conduct, held) or self.can(cost, old, new)
        found = self.actuator(cost)
        if why is not None or found is None:
            return Report(result=REFUSED, reason=why or "", mode=old)
        try:
            errand = self.intents.begin(self.spot.note.server.name, cost, old, new, reason)
            return self._run(found, errand, old, new)
        except IntentError as error:
            self._let_in()
            return Report(result=REFUSED, reason=str(error), mode=None)

    def give_table(self, table: Table | None, base: Mode, *, conduct: AgentMode, held: str | None = None) -> Report:
        """Have the engine follow a table (None: none, but run `base`); no step is noted, since the engine tells what it follows."""
        why = self.refusal(conduct, held)
        if why is not None:
            return Report(result=REFUSED, reason=why, mode=None)
        match self.live.follow(table, base):
            case Refused(reason=reason):
                return Report(result=REFUSED, reason=reason, mode=None)
            case Broken(reason=reason):
                return Report(result=BROKEN, reason=reason, mode=None)
            case Moved(took_s=took_s, evidence=evidence):
                return Report(result=DONE, reason="; ".join(evidence), mode=None, took_s=took_s)

    def _let_in(self) -> None:
        """Let requests come again at once where the disk refused a step; `mend` does it again and writes it down."""
        for intent in self.intents.open_ones(self.spot.note.server.name):
            facts = intent.facts_of(TAKEN)
            if facts is not None and intent.facts_of(BACK) is None and intent.facts_of(REQUESTED) is None:
                with contextlib.suppress(DoorError):
                    self.restart.door.bring_back(taken_of(facts))

    def _run(self, found: Actuator, errand: Errand, old: Mode, new: Mode) -> Report:
        outcome = found.switch(old, new, errand)
        if self.stopping.is_set() and isinstance(outcome, Broken):
            return Report(result=INTERRUPTED, reason=outcome.reason, mode=None)
        match outcome:
            case Refused(reason=reason):
                return self._end(errand, Report(result=REFUSED, reason=reason, mode=old))
            case Broken(reason=reason):
                return self._broken(found, errand, old, outcome)
            case Moved(took_s=took_s, evidence=evidence):
                return self._confirmed(found, errand, old, new, Moved(took_s=took_s, evidence=evidence))
            case _:
                assert_never(outcome)

    def _broken(self, found: Actuator, errand: Errand, old: Mode, outcome: Broken) -> Report:
        """A restart that failed has been taken back by the act itself; a live change is told back here."""
        if found.cost is not Cost.LIVE:
            if self._begun(errand, TAKEN) and not self._begun(errand, BACK):
                return Report(result=BROKEN, reason=outcome.reason, mode=outcome.serving)  # open: `mend` tries again
            return self._end(errand, Report(result=BROKEN, reason=outcome.reason, mode=outcome.serving))
        back = found.revert(old, errand)
        if isinstance(back, Moved):
            return self._end(errand, Report(result=REVERTED, reason=outcome.reason, mode=old))
        reason = f"{outcome.reason}; and back: {back.reason}"
        return self._end(errand, Report(result=BROKEN, reason=reason, mode=None))

    def _begun(self, errand: Errand, step: str) -> bool:
        """Claim that an errand has begun a step."""
        return any(intent.id == errand.id and intent.facts_of(step) is not None for intent in self.intents.all)

    def _confirmed(self, found: Actuator, errand: Errand, old: Mode, new: Mode, moved: Moved) -> Report:
        proof = found.confirm(new)
        if isinstance(proof, Refuted) and found.cost is Cost.LIVE:
            back = found.revert(old, errand)
            result, mode = (REVERTED, old) if isinstance(back, Moved) else (BROKEN, None)
            return self._end(errand, Report(result=result, reason="; ".join(proof.reasons), mode=mode, proof=proof))
        if found.cost is Cost.LIVE:
            self._note(errand, old, new, moved, proof)
        words = said_of(proof)
        return self._end(errand, Report(result=DONE, reason=words, mode=new, took_s=moved.took_s, proof=proof))

    def _end(self, errand: Errand, report: Report) -> Report:
        try:
            self.intents.end(errand.id, report.result)
        except IntentError as error:
            return Report(
                result=report.result, reason=f"{report.reason} ({error})", mode=report.mode, took_s=report.took_s
            )
        return report

    def _note(self, errand: Errand, old: Mode, new: Mode, moved: Moved, proof: Proof) -> None:
        """Ask for a record of a live change beside those of deploys; one that does not come is missing, nothing more."""
        wanted = requests.Request(
            id=errand.id,
            server=self.spot.note.server.name,
            kind=requests.NOTE_LIVE,
            reason=_line(errand.reason),
            boot=self.spot.boot,
            at_s=self.spot.clock(),
            mode=str(new),
            was=str(old),
            took_s=moved.took_s,
            proof="proven" if isinstance(proof, Proven) else None,
            evidence=tuple(_line(each) for each in evidence_of(proof)),
        )
        errand.note("noting")
        try:
            requests.file_request(self.spot.requests, wanted)
        except OSError:
            return

    def mend(self, running: Mode | None) -> tuple[Report, ...]:
        """Bring to its end what a crash or a stop left open; `running`: what is believed to run, for the reports.

        Called at the start, and again each minute while something is open. What matters is asked of the engine itself.
        """
        return tuple(self._mended(intent, running) for intent in self.intents.open_ones(self.spot.note.server.name))

    def _mended(self, intent: Intent, running: Mode | None) -> Report:
        errand = self.intents.errand(intent)
        try:
            if intent.cost is Cost.RESTART:
                return self._mended_restart(intent, errand, running)
            return self._mended_live(intent, errand, running)
        except IntentError as error:
            return Report(result=BROKEN, reason=str(error), mode=running)

    def _mended_live(self, intent: Intent, errand: Errand, running: Mode | None) -> Report:
        """A live change is whole or was not made: the engine says which. A reboot has ended it either way."""
        if intent.boot != self.spot.boot:
            return self._end(errand, Report(result=REFUSED, reason="the host was restarted meanwhile", mode=running))
        profile, info = self.live.server.profile, self.live.engine.info()
        wrong = engine_live.differing(info, engine_live.fields(profile, intent.new))
        if wrong is None:
            return Report(result=INTERRUPTED, reason="the engine does not say what it runs", mode=None)
        if not wrong:
            self._note(errand, intent.old, intent.new, Moved(took_s=0.0), Claimed(missing=("the agent was restarted",)))
            reason = "found done after a restart of the agent"
            return self._end(errand, Report(result=DONE, reason=reason, mode=intent.new))
        as_before = not engine_live.differing(info, engine_live.fields(profile, intent.old))
        mode = intent.old if as_before else running
        return self._end(errand, Report(result=REFUSED, reason="it was not begun", mode=mode))

    def _mended_restart(self, intent: Intent, errand: Errand, running: Mode | None) -> Report:
        """Wait for what the performer was asked, then let requests come again."""
        taken_facts = intent.facts_of(TAKEN)
        taken = [] if taken_facts is None or intent.facts_of(BACK) is not None else [taken_of(taken_facts)]
        if self._asked(intent):
            outcome: Outcome = self.restart.await_result(errand, taken, time.monotonic())
            if self.stopping.is_set() and isinstance(outcome, Broken):
                return Report(result=INTERRUPTED, reason=outcome.reason, mode=running)
            return self._after_wait(intent, errand, outcome, taken, running)
        if taken and not self.live.engine.is_ready():
            return Report(result=INTERRUPTED, reason="the server does not serve yet", mode=None)
        if taken:
            reason = self.restart.reopen(taken[0], errand)
            if reason is not None:
                return Report(result=BROKEN, reason=reason, mode=running)  # open: the next minute tries again
        reason = "the host was restarted meanwhile" if intent.boot != self.spot.boot else "the agent was restarted"
        return self._end(errand, Report(result=REFUSED, reason=reason, mode=running))

    def _asked(self, intent: Intent) -> bool:
        """Claim that the performer was asked in this boot; a crash may have come between the mark and the request."""
        filed = requests.is_filed(self.spot.requests, intent.id)
        answered = requests.read_result(self.spot.folder, intent.id) is not None
        return intent.facts_of(REQUESTED) is not None and intent.boot == self.spot.boot and (filed or answered)

    def _after_wait(
        self, intent: Intent, errand: Errand, outcome: Outcome, taken: list[Taken], running: Mode | None
    ) -> Report:
        match outcome:
            case Moved(took_s=took_s):
                proof = self.restart.confirm(intent.new)
                report = Report(result=DONE, reason=said_of(proof), mode=intent.new, took_s=took_s, proof=proof)
            case Refused(reason=reason):
                report = Report(result=REFUSED, reason=reason, mode=intent.old)
            case Broken(reason=reason, serving=serving):
                report = Report(result=BROKEN, reason=reason, mode=serving or running)
                closed = bool(taken) and not self._begun(errand, BACK)
                # Nobody is sent to a server that does not serve; once it does, whoever brought it up, requests come again.
                if closed and (not self.live.engine.is_ready() or self.restart.reopen(taken[0], errand) is not None):
                    return report
            case _:
                assert_never(outcome)
        return self._end(errand, report)


def said_of(proof: Proof) -> str:
    """Say a proof in a line."""
    match proof:
        case Proven(evidence=evidence):
            return f"proven: {'; '.join(evidence[:EVIDENCE])}"
        case Claimed(missing=missing):
            return f"claimed: {'; '.join(missing[:EVIDENCE])}"
        case Refuted(reasons=reasons):
            return f"refuted: {'; '.join(reasons[:EVIDENCE])}"
        case _:
            assert_never(proof)


def evidence_of(proof: Proof) -> tuple[str, ...]:
    """Return what was seen."""
    return proof.evidence[:EVIDENCE] if isinstance(proof, (Proven, Claimed)) else ()


def _line(text: str) -> str:
    """Return a text as one printable line of a bounded length."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown[: requests.REASON_CHARACTERS]
