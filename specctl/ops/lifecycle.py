"""Stop, start and undeploy: acts that need no plan, one server after another's own lease, hosts in parallel."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from specctl.errors import NoHealthyReleaseError, RolledBackError, SpecctlError
from specctl.fleet.types import Host, Server
from specctl.ops import act as acts
from specctl.ops import guard
from specctl.ops import turn as steps
from specctl.ops.contact import Contact, contacts, in_parallel
from specctl.ops.deploy import blank_record, keep_copy, live_server, previous_of, redacted
from specctl.ops.drain import drain
from specctl.ops.gate import INTERRUPTED
from specctl.ops.lease import leased
from specctl.ops.prepare import demand_readable
from specctl.ops.reporter import Reporter
from specctl.ops.stored import current_of, demand_key, reach
from specctl.ops.turn import Turn
from specctl.rollout.facts import ServerFacts
from specctl.rollout.outcome import Outcome, as_selected
from specctl.rollout.record import Act, Record, Result

Done = tuple[Record, SpecctlError | None]


class Work(Protocol):
    """One of these acts."""

    def idle(self, contact: Contact, server: Server, facts: ServerFacts) -> str | None:
        """Say why nothing is to be done, None where something is; raises UsageError where it cannot be meant."""

    def __call__(self, turn: Turn, record: Record) -> Done:
        """Do it, under the lease."""


class Stop:
    """Drains and stops; the release stays what a boot would start."""

    def idle(self, contact: Contact, server: Server, facts: ServerFacts) -> str | None:
        """Demand that something is deployed."""
        del server
        current_of(contact, facts)
        return None

    def __call__(self, turn: Turn, record: Record) -> Done:
        """Drain and stop."""
        drain(turn)
        if turn.interrupted.is_set():
            return _unchanged(turn, record)
        steps.stop(turn)
        turn.final("stopped", "by request; specctl start brings it back")
        return replace(record, result=Result.DONE), None


class Start:
    """Starts what is deployed and gates it; a server that is up already is left alone."""

    def idle(self, contact: Contact, server: Server, facts: ServerFacts) -> str | None:
        """Demand that something is deployed, and that its key is known here."""
        demand_key(contact.host, server, current_of(contact, facts).manifest)
        return None

    def __call__(self, turn: Turn, record: Record) -> Done:
        """Start and gate."""
        return _start(turn, record)


def _start(turn: Turn, record: Record) -> Done:
    aim = previous_of(turn.facts, turn.server)
    assert aim is not None
    record = replace(record, release=aim.release, algo=aim.algo)
    if turn.facts.unit.active == "active":
        turn.final("running", f"{aim} already")
        return replace(record, result=Result.DONE), None
    steps.activate(turn, aim)  # It may be disabled, since no release of it was healthy.
    end = steps.bring_up(turn, aim, prove=True)
    record = replace(record, invocation=end.state.invocation)
    if end.healthy:
        turn.final("ready", f"{aim}")
        return replace(acts.served(record, aim, end), result=Result.DONE), None
    acts.tell_failure(turn, end)
    steps.stop(turn)
    turn.call("unit.disable", {})
    error = NoHealthyReleaseError(
        f"{aim} did not come up ({end.cause}): the server is stopped",
        hint=f"specctl logs --host {turn.host}",
        host=turn.host,
    )
    return replace(record, result=Result.STOPPED, cause=end.cause), error


def _unchanged(turn: Turn, record: Record) -> Done:
    """End an act that was interrupted before it changed anything."""
    words = f"{INTERRUPTED}: nothing was changed"
    return replace(record, result=Result.FAILED, cause=words), RolledBackError(words, host=turn.host)


class Undeploy:
    """Takes a server off its host; `purge` removes its releases too, records stay."""

    def __init__(self, *, purge: bool) -> None:
        self.purge = purge

    def idle(self, contact: Contact, server: Server, facts: ServerFacts) -> str | None:
        """Say so where nothing of the server is left to remove."""
        del server
        demand_readable(contact, facts)
        left = facts.current is not None or facts.guard is not None or (self.purge and facts.releases)
        return None if left else "nothing is deployed"

    def __call__(self, turn: Turn, record: Record) -> Done:
        """Drain, stop, and remove unit and links."""
        drain(turn)
        if turn.interrupted.is_set():
            return _unchanged(turn, record)
        steps.stop(turn)
        turn.call("unit.disable_remove", {"purge": self.purge})
        turn.final("removed", "unit and links" + (", releases" if self.purge else "; releases and records stay"))
        return replace(record, result=Result.DONE), None


def run(
    selected: Sequence[tuple[Host, Server]],
    act: Act,
    work: Work,
    reporter: Reporter,
    *,
    interrupted: threading.Event,
    steal: bool = False,
) -> tuple[Outcome, ...]:
    """Do the work on every selected server; returns an outcome each, in the order of selection.

    `interrupted` once set: a server that is drained is left running, one that loads is stopped again.
    """
    outcomes: list[Outcome] = []

    def one(pair: tuple[Host, Server], found: Contact | SpecctlError) -> Outcome:
        host, server = pair
        try:
            if isinstance(found, SpecctlError):
                raise found
            return _on_server(found, server, act, work, reporter, interrupted, steal=steal)
        except SpecctlError as error:
            error.host = error.host or host.name
            return Outcome(host=host.name, server=server.name, error=error)

    with contacts([host for host, _ in selected]) as reached:
        in_parallel(lambda pair: outcomes.append(one(pair, reached[pair[0].name])), list(selected), leave=True)
    return as_selected(outcomes, selected)


def _on_server(
    contact: Contact,
    server: Server,
    act: Act,
    work: Work,
    reporter: Reporter,
    interrupted: threading.Event,
    *,
    steal: bool,
) -> Outcome:
    facts = reach(contact, server, brief=True).servers[server.name]
    idle = work.idle(contact, server, facts)
    if idle is not None:
        reporter.final(contact.host.name, "removed", idle)
        return Outcome(host=contact.host.name, server=server.name)
    began_s = time.monotonic()
    with leased(contact, server, act.value, steal=steal) as token:
        turn = Turn(
            contact=contact,
            server=server,
            live=live_server(server, facts),
            token=token,
            reporter=reporter,
            interrupted=interrupted,
            facts=facts,
            act=act,
        )
        guard.disarm(turn)
        previous = previous_of(facts, server)
        record = blank_record(contact, server, act)
        if previous is not None:
            record = replace(record, previous=(previous.release, previous.algo))
        record, error = work(turn, record)
        turn.durations_s["total"] = time.monotonic() - began_s
        record = replace(record, durations_s=dict(turn.durations_s))
        keep_copy(turn, record)
        guard.confirm(turn, redacted(turn, record))
    return Outcome(host=contact.host.name, server=server.name, record=record, error=error)
