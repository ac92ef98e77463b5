"""Deploy, switch and roll back: plan every selected server first, then act on them, hosts in parallel, a canary before the rest."""

from __future__ import annotations

import secrets as random_source
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from specctl.adapters import records
from specctl.errors import PartialError, RemoteCommandError, SpecctlError, UsageError
from specctl.fleet.types import AgentMode, Host, Server
from specctl.ops import act as acts
from specctl.ops import agent_note, guard
from specctl.ops.act import Care
from specctl.ops.contact import Contact, contacts, in_parallel, tried
from specctl.ops.lease import leased
from specctl.ops.preflight import gather
from specctl.ops.prepare import Prepared, checked, prepare, read_release, refused
from specctl.ops.reporter import Reporter
from specctl.ops.turn import Aim, Turn
from specctl.rollout.agent_moves import as_agent_left, live_move
from specctl.rollout.facts import ServerFacts, as_deployed, stored_knobs
from specctl.rollout.guarded import NO_GUARD
from specctl.rollout.outcome import Outcome, as_selected, failures
from specctl.rollout.record import Act, Record, Result

if TYPE_CHECKING:
    from specctl.adapters.templates import Templates

RELEASES_KEPT = 10
# What these acts start has served before: a rule of the linter must not stand in the way back.
SERVED_BEFORE = (Act.ROLLBACK, Act.RESTART)
UNDONE_BY_ROLLBACK = (Act.DEPLOY, Act.SWITCH, Act.ROLLBACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for, beside the servers: `algo` None takes each server's own."""

    act: Act
    algo: str | None = None
    force: bool = False
    canary: bool = False
    steal: bool = False
    care: Care = field(default_factory=Care)
    reason: str | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Rollout:
    """A planned rollout: what each selected server needs, and what already failed; `carry_out` may be called once."""

    request: Request
    selected: Sequence[tuple[Host, Server]]
    prepared: tuple[Prepared, ...]
    failed: tuple[Outcome, ...]
    interrupted: threading.Event

    @property
    def letters(self) -> tuple[Prepared, ...]:
        """Return the servers on which nothing is to be done but to tell the host's agent something new."""
        return tuple(one for one in self.prepared if one.plan.note)

    @property
    def plans(self) -> tuple[Prepared, ...]:
        """Return the servers on which there is something to do, and whose checks let it be done."""
        return tuple(one for one in self.prepared if one.plan.nothing is None and refused(one) is None)

    def carry_out(self, reporter: Reporter) -> tuple[Outcome, ...]:
        """Act on every planned server; returns an outcome for each selected one, in the order of selection."""
        idle = (*self.refused(), *(self._tell(item, reporter) for item in self.letters), *self.idle())
        todo = list(self.plans)
        done: list[Outcome] = []
        if self.request.canary and len(todo) > 1:
            first = todo.pop(0)
            done.append(self._one(first, reporter))
            if not done[0].ok:
                text = f"the canary on {first.plan.host} failed"
                skipped = [Outcome(host=p.plan.host, server=p.plan.server, plan=p.plan, skipped=text) for p in todo]
                return as_selected((*self.failed, *idle, *done, *skipped), self.selected)
        in_parallel(lambda item: done.append(self._one(item, reporter)), todo, leave=True)
        return as_selected((*self.failed, *idle, *done), self.selected)

    def _tell(self, item: Prepared, reporter: Reporter) -> Outcome:
        """Tell the host's agent what is new, and do nothing else."""
        assert item.told is not None, "a plan that tells something has it"
        base = Outcome(host=item.plan.host, server=item.plan.server, plan=item.plan)
        try:
            with leased(item.contact, item.told.server, "tell the agent", steal=self.request.steal) as token:
                agent_note.deliver(item.contact, item.told, token)
        except SpecctlError as error:
            error.host = error.host or item.plan.host
            return replace(base, error=error)
        reporter.final(item.plan.host, "agent", "told anew what it may do")
        return base

    def refused(self) -> tuple[Outcome, ...]:
        """Return the outcomes of the servers that a failed check keeps from being touched."""
        errors = [(p.plan, refused(p)) for p in self.prepared]
        return tuple(Outcome(host=p.host, server=p.server, plan=p, error=error) for p, error in errors if error)

    def idle(self) -> tuple[Outcome, ...]:
        """Return the outcomes of the servers on which nothing is to be done."""
        return tuple(
            Outcome(host=p.plan.host, server=p.plan.server, plan=p.plan)
            for p in self.prepared
            if p.plan.nothing is not None and not p.plan.note
        )

    def planned(self) -> tuple[Outcome, ...]:
        """Return the outcome of a dry run."""
        plans = [(p.plan, refused(p)) for p in self.prepared]
        planned = [Outcome(host=p.host, server=p.server, plan=p, error=error) for p, error in plans]
        return as_selected((*self.failed, *planned), self.selected)

    def _one(self, item: Prepared, reporter: Reporter) -> Outcome:
        base = Outcome(host=item.plan.host, server=item.plan.server, plan=item.plan)
        try:
            ended = carry_out(item, self.request, reporter, self.interrupted)
        except SpecctlError as error:
            error.host = error.host or item.plan.host
            reporter.final(item.plan.host, "failed", error.message)
            return replace(base, error=error)
        return replace(base, record=ended.record, error=ended.error)


def blank_record(contact: Contact, server: Server, act: Act) -> Record:
    """Return a record of an act that has begun."""
    return Record(
        act=act,
        result=Result.STARTED,
        server=server.name,
        host=contact.host.name,
        who=contact.who,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        specctl=version("specctl-fleet"),
    )


def settle(turn: Turn, aim: Aim, ended: acts.Ended) -> acts.Ended:
    """End the act on the host, where that is ours to do: record it and, in the same step, confirm it to the guard."""

    def confirmed() -> acts.Ended:
        guard.confirm(turn, redacted(turn, ended.record))
        return ended

    if ended.ours:
        ended = acts.known(turn, aim, ended.record, confirmed)
    keep_copy(turn, ended.record)
    return ended


def keep_copy(turn: Turn, record: Record) -> None:
    """Keep the operator's own copy of a record; one that cannot be kept is a warning. A program keeps none."""
    if turn.contact.program is not None:
        return
    warning = records.keep(redacted(turn, record))
    if warning:
        turn.reporter.final(turn.host, "warning", warning)


def redacted(turn: Turn, record: Record) -> Mapping[str, object]:
    """Return a record's JSON object with every secret blotted out."""
    return redacted_by(turn.contact, record)


def redacted_by(contact: Contact, record: Record) -> Mapping[str, object]:
    """Return a record's JSON object without the secrets that a contact knows."""
    wire = contact.redactor.redact_value(record.as_wire())
    assert isinstance(wire, Mapping)
    return wire


def way_back(contact: Contact, server: Server, facts: ServerFacts) -> Aim | None:
    """Return what an act goes back to: what the host is set to start, but never what another act left unconfirmed."""
    if facts.guard is None:
        return previous_of(facts, server)
    if facts.guard.back is None:
        return None
    release, algo = facts.guard.back
    manifest, _ = read_release(contact, server, release)
    deployed = as_deployed(server, manifest)
    return Aim(release=release, algo=algo, server=deployed, knobs=stored_knobs(manifest, algo))


def carry_out(item: Prepared, request: Request, reporter: Reporter, interrupted: threading.Event) -> acts.Ended:
    """Do one planned act under the server's lease, and record how it ended."""
    contact, server, plan = item.contact, item.server, item.plan
    reason = request.reason or f"{request.act.value} {plan.algo}"
    with leased(contact, server, reason, steal=request.steal) as token:
        unchanged(item)
        turn = Turn(
            contact=contact,
            server=server,
            live=live_server(server, item.facts),
            token=token,
            reporter=reporter,
            interrupted=interrupted,
            facts=item.facts,
            act=request.act,
            back=way_back(contact, server, item.facts),
        )
        skipped = plan.checks.skipped if plan.checks else {}
        record = replace(
            blank_record(contact, server, request.act),
            previous=plan.running,
            skipped_checks=skipped,
            digests=item.digests,
            reason=request.reason,
            weights_bytes=item.facts.weights_bytes,
        )
        aim = aim_of(item)
        ended = settle(turn, aim, acts.perform(turn, aim, record, request.care))
        if ended.error is None:
            contact.call("release.prune", server, {"keep": RELEASES_KEPT, "token": token})
            _deliver(turn, item.told)
    return ended


def _deliver(turn: Turn, told: agent_note.Letter | None) -> None:
    """Tell the host's agent what it has to do with now; the act is done and stays so where that fails."""
    if told is None:
        return
    try:
        agent_note.deliver(turn.contact, told, turn.token)
    except SpecctlError as error:
        turn.final("warning", f"the agent was not told: {error.message}; the next deploy tells it")


def unchanged(item: Prepared) -> None:
    """Check, under the lease, that the host is still as it was when the plan was made; raise RemoteCommandError else."""
    now = gather(item.contact, (item.server,), brief=True).servers[item.server.name]
    before = item.facts
    if (now.current, now.releases, _goal(now)) != (before.current, before.releases, _goal(before)):
        raise RemoteCommandError(
            "the server was changed by somebody else since the plan was made",
            hint="run the command again for a new plan",
        )


def _goal(facts: ServerFacts) -> tuple[str, tuple[str, str] | None] | None:
    """Return whose guard is armed, and what it goes back to."""
    return None if facts.guard is None else (facts.guard.who or "", facts.guard.back)


def live_server(server: Server, facts: ServerFacts) -> Server:
    """Return the server with the address of what the host runs now."""
    return as_deployed(server, facts.current.manifest) if facts.current else server


def aim_of(item: Prepared) -> Aim:
    """Return what the plan aims at."""
    plan = item.plan
    if not plan.writes or item.release is None:
        return Aim(release=plan.release, algo=plan.algo, server=item.server, knobs=plan.knobs)
    manifest = item.release.manifest(
        salt=random_source.token_hex(16),
        who=item.contact.who,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        version=version("specctl-fleet"),
    )
    return Aim(
        release=plan.release,
        algo=plan.algo,
        server=item.server,
        write=item.release,
        manifest=manifest,
        knobs=plan.knobs,
    )


def previous_of(facts: ServerFacts, server: Server) -> Aim | None:
    """Return what to go back to: what the host is set to start now; None on a first deploy."""
    current = facts.current
    if current is None:
        return None
    deployed = as_deployed(server, current.manifest)
    return Aim(release=current.id, algo=current.algo, server=deployed, knobs=current.knobs())


def unguarded(item: Prepared) -> Prepared:
    """Let the plan say so where the host cannot take the act back by itself."""
    if item.plan.nothing is not None or guard.guards(item.contact.host):
        return item
    return replace(item, plan=replace(item.plan, warnings=(*item.plan.warnings, NO_GUARD)))


def _kept(contact: Contact, server: Server, request: Request) -> Server:
    """Return the server with what its agent owns and has moved, unless somebody names the algo."""
    owns = bool(server.agent.algos or server.agent.knobs) and server.agent.mode is AgentMode.ACT
    if request.act is not Act.DEPLOY or request.algo is not None or not owns:
        return server
    return as_agent_left(server, gather(contact, (server,), brief=True).servers[server.name])


def _named_otherwise(item: Prepared, request: Request) -> bool:
    """Claim that somebody names an algo that a start would run, and the running engine was told another mode."""
    moved = live_move(item.facts)
    if request.algo is None or item.plan.nothing is None or moved is None:
        return False
    return (moved.algo, dict(moved.knobs)) != (item.plan.algo, dict(item.plan.knobs))


def _told(item: Prepared, told: agent_note.Letter) -> Prepared:
    """Return the plan with what the host's agent is told; where nothing else is to be done, only if that is something new."""
    note = item.plan.nothing is not None and agent_note.differs(item.contact, told)
    return replace(item, told=told, plan=replace(item.plan, note=note))


@contextmanager
def rollout(
    selected: Sequence[tuple[Host, Server]],
    request: Request,
    *,
    templates: Templates,
    make_ready: Callable[..., Prepared] = prepare,
) -> Iterator[Rollout]:
    """Reach the hosts, plan every selected server in parallel and yield the rollout; hangs up at the end.

    A host that fails is an outcome of the rollout, never an end of it.
    """

    def plan_one(contact: Contact, server: Server) -> Prepared:
        told = agent_note.letter(server) if request.act is Act.DEPLOY else None
        server = _kept(contact, server, request)
        plan = partial(make_ready, contact, server, request.algo or server.algo, templates=templates)
        ready = plan(force=request.force)
        if _named_otherwise(ready, request):
            ready = plan(force=True)
        ready = checked(ready, request.skipped, served=request.act in SERVED_BEFORE)
        return unguarded(_told(ready, told) if told is not None else ready)

    with contacts([host for host, _ in selected]) as reached:
        found = tried(reached, selected, plan_one)
        yield Rollout(
            request=request,
            selected=selected,
            prepared=tuple(one for one in found.values() if isinstance(one, Prepared)),
            failed=failures(found),
            interrupted=threading.Event(),
        )


def whole(outcomes: Sequence[Outcome]) -> SpecctlError | None:
    """Return the error that a command over several servers ends with; None when all did what was asked."""
    failures = [outcome for outcome in outcomes if not outcome.ok]
    if not failures:
        return None
    if len(outcomes) == 1 and failures[0].error is not None:
        return failures[0].error
    names = ", ".join(outcome.host for outcome in failures)
    return PartialError(
        f"{len(failures)} of {len(outcomes)} servers failed: {names}",
        hint="specctl status, then the same command again",
    )


def refuse_algo(selected: Sequence[tuple[Host, Server]], algo: str | None) -> None:
    """Refuse an algo that no engine could know, before any host is reached."""
    from specctl.algos import ALGOS

    if algo is not None and algo not in ALGOS:
        raise UsageError(f"there is no algo {algo}", hint=f"one of {', '.join(ALGOS)}")
    if not selected:
        raise UsageError("no server is selected", hint="specctl inventory list")


def undo_hint(outcomes: Sequence[Outcome]) -> str | None:
    """Say how to undo what was done, when something was."""
    done = [
        o
        for o in outcomes
        if o.ok and o.record and o.record.previous and not o.record.live and o.record.act in UNDONE_BY_ROLLBACK
    ]
    if not done:
        return None
    hosts = " ".join(f"--host {name}" for name in dict.fromkeys(o.host for o in done))
    return f"undo: specctl rollback {hosts}"
