"""Stop, start and undeploy: acts that need no plan, one server after another's own lease, hosts in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from specctl.errors import NoHealthyReleaseError, SpecctlError
from specctl.fleet.types import Host, Server
from specctl.ops import act as acts
from specctl.ops import guard
from specctl.ops import turn as steps
from specctl.ops.contact import Contact, contacts, in_parallel
from specctl.ops.deploy import blank_record, keep_copy, live_server, previous_of, redacted
from specctl.ops.drain import drain
from specctl.ops.lease import leased
from specctl.ops.reporter import Reporter
from specctl.ops.stored import current_of, reach
from specctl.ops.turn import Turn
from specctl.rollout.outcome import Outcome
from specctl.rollout.record import Act, Record, Result

Work = Callable[[Turn, Record], tuple[Record, SpecctlError | None]]


def stop(turn: Turn, record: Record) -> tuple[Record, SpecctlError | None]:
    """Drain and stop; the release stays what a boot would start."""
    drain(turn)
    steps.stop(turn)
    turn.final("stopped", "by request; specctl start brings it back")
    return replace(record, result=Result.DONE), None


def start(turn: Turn, record: Record) -> tuple[Record, SpecctlError | None]:
    """Start what is deployed and gate it; a server that is up already is left alone."""
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


class Undeploy:
    """Takes a server off its host; `purge` removes its releases too, records stay."""

    def __init__(self, *, purge: bool) -> None:
        self.purge = purge

    def __call__(self, turn: Turn, record: Record) -> tuple[Record, SpecctlError | None]:
        """Drain, stop, and remove unit and links."""
        drain(turn)
        steps.stop(turn)
        turn.call("unit.disable_remove", {"purge": self.purge})
        turn.final("removed", "unit and links" + (", releases" if self.purge else "; releases and records stay"))
        return replace(record, result=Result.DONE), None


def run(
    selected: Sequence[tuple[Host, Server]], act: Act, work: Work, reporter: Reporter, *, steal: bool = False
) -> tuple[Outcome, ...]:
    """Do the work on every selected server; returns an outcome each."""
    outcomes: list[Outcome] = []

    def one(pair: tuple[Host, Server], found: Contact | SpecctlError) -> Outcome:
        host, server = pair
        try:
            if isinstance(found, SpecctlError):
                raise found
            return _on_server(found, server, act, work, reporter, steal=steal)
        except SpecctlError as error:
            error.host = error.host or host.name
            return Outcome(host=host.name, server=server.name, error=error)

    with contacts([host for host, _ in selected]) as reached:
        in_parallel(lambda pair: outcomes.append(one(pair, reached[pair[0].name])), list(selected))
    return tuple(outcomes)


def _on_server(contact: Contact, server: Server, act: Act, work: Work, reporter: Reporter, *, steal: bool) -> Outcome:
    facts = reach(contact, server, brief=True).servers[server.name]
    current_of(contact, facts)
    with leased(contact, server, act.value, steal=steal) as token:
        turn = Turn(
            contact=contact,
            server=server,
            live=live_server(server, facts),
            token=token,
            reporter=reporter,
            interrupted=threading.Event(),
            facts=facts,
            act=act,
        )
        guard.disarm(turn)
        previous = previous_of(facts, server)
        record = blank_record(contact, server, act)
        if previous is not None:
            record = replace(record, previous=(previous.release, previous.algo))
        record, error = work(turn, record)
        record = replace(record, durations_s=dict(turn.durations_s))
        keep_copy(turn, record)
        guard.confirm(turn, redacted(turn, record))
    return Outcome(host=contact.host.name, server=server.name, record=record, error=error)
