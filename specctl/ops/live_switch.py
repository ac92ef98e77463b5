"""Switch a server's algo while it runs: the engine is told, says so itself, serves a smoke and proves it, or is told back.

Nothing is started and no file of the server changes: a start runs what its release says.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from specctl.errors import ConnectError, RemoteCommandError, RolledBackError, SpecctlError, UnhealthyError
from specctl.fleet.types import Host, Server
from specctl.ops.contact import contacts, in_parallel, tried
from specctl.ops.deploy import blank_record, keep_copy, redacted
from specctl.ops.engine_http import Reply
from specctl.ops.engine_live import Engine, accepted, differing, fields, refusal, untouched
from specctl.ops.gate import Gate, Question
from specctl.ops.lease import leased
from specctl.ops.live_plan import Telling, Wish, plan
from specctl.ops.look import opening_of
from specctl.ops.reconnect import resume
from specctl.ops.reporter import Reporter
from specctl.ops.stored import current_of, reach_deployed
from specctl.ops.turn import Turn
from specctl.rollout.agent_moves import live_move
from specctl.rollout.launch import algo_profile
from specctl.rollout.outcome import Outcome, as_selected, failures
from specctl.rollout.proof import Proven
from specctl.rollout.record import Act, Record, Result

if TYPE_CHECKING:
    from specctl.adapters.session import HostSession


@dataclass(slots=True, kw_only=True)
class Tellings:
    """What is to be told to the engines of the selected servers, and what already failed; `carry_out` may be called once."""

    wish: Wish
    selected: Sequence[tuple[Host, Server]]
    planned: tuple[Telling, ...]
    failed: tuple[Outcome, ...]
    interrupted: threading.Event = field(default_factory=threading.Event)

    @property
    def todo(self) -> tuple[Telling, ...]:
        """Return the servers on which there is something to do."""
        return tuple(one for one in self.planned if not one.plan.nothing)

    def planned_only(self) -> tuple[Outcome, ...]:
        """Return the outcomes of a look, or where nothing is to be done."""
        looked = (Outcome(host=one.plan.host, server=one.plan.server) for one in self.planned)
        return as_selected((*self.failed, *looked), self.selected)

    def carry_out(self, reporter: Reporter) -> tuple[Outcome, ...]:
        """Tell every engine; returns an outcome for each selected server."""
        done = [Outcome(host=one.plan.host, server=one.plan.server) for one in self.planned if one.plan.nothing]
        todo = list(self.todo)
        if self.wish.canary and len(todo) > 1:
            first = todo.pop(0)
            done.append(self._one(first, reporter))
            if not done[-1].ok:
                text = f"the canary on {first.plan.host} failed"
                rest = [Outcome(host=one.plan.host, server=one.plan.server, skipped=text) for one in todo]
                return as_selected((*self.failed, *done, *rest), self.selected)
        in_parallel(lambda one: done.append(self._one(one, reporter)), todo)
        return as_selected((*self.failed, *done), self.selected)

    def _one(self, telling: Telling, reporter: Reporter) -> Outcome:
        host = telling.contact.host.name
        base = Outcome(host=host, server=telling.server.name)
        try:
            record, error = _carried(telling, self.wish, reporter, self.interrupted)
        except SpecctlError as failed:
            failed.host = failed.host or host
            reporter.final(host, "failed", failed.message)
            return replace(base, error=failed)
        return replace(base, record=record, error=error)


def undo_hint(planned: Sequence[Telling], outcomes: Sequence[Outcome]) -> str | None:
    """Say how to undo what was done, where all servers ran the same before."""
    done = {(o.host, o.server) for o in outcomes if o.ok and o.record}
    told = [one for one in planned if (one.plan.host, one.plan.server) in done]
    if not told or len({one.plan.old for one in told}) > 1:
        return None
    words = [f"--host {name}" for name in dict.fromkeys(one.plan.host for one in told)]
    knobs = [f"--knob {name}={value}" for name, value in told[0].plan.said.items()]
    return " ".join(["undo: specctl switch --live", *words, f"--algo {told[0].plan.old.algo}", *knobs])


@contextmanager
def tellings(selected: Sequence[tuple[Host, Server]], wish: Wish) -> Iterator[Tellings]:
    """Reach the hosts and plan every selected server in parallel; hangs up at the end."""
    with contacts([host for host, _ in selected]) as reached:
        found = tried(reached, selected, lambda contact, server: plan(contact, server, wish))
        planned = tuple(one for one in found.values() if isinstance(one, Telling))
        yield Tellings(wish=wish, selected=selected, planned=planned, failed=failures(found))


def _carried(
    telling: Telling, wish: Wish, reporter: Reporter, interrupted: threading.Event
) -> tuple[Record, SpecctlError | None]:
    """Tell one engine under the server's lease, have it proven, and record how it ended."""
    contact, server = telling.contact, telling.server
    began = time.monotonic()
    with leased(contact, server, wish.reason or f"switch {telling.plan.new} live", steal=wish.steal) as token:
        turn = Turn(
            contact=contact,
            server=server,
            live=server,
            token=token,
            reporter=reporter,
            interrupted=interrupted,
            facts=telling.facts,
            act=Act.SWITCH,
        )
        _unchanged(telling)
        record, error = _done(turn, telling, _blank(telling, wish))
        record = replace(record, durations_s={**turn.durations_s, "total": time.monotonic() - began})
        contact.call("record.append", server, {"record": dict(redacted(turn, record))})
        keep_copy(turn, record)
    return record, error


def _unchanged(telling: Telling) -> None:
    """Check, under the lease, that what runs is what the plan was made for."""
    _, now = reach_deployed(telling.contact, telling.server)
    before = telling.facts
    if (now.unit.invocation, now.current, now.guard, live_move(now)) != (
        before.unit.invocation,
        before.current,
        before.guard,
        live_move(before),
    ):
        raise RemoteCommandError(
            "the server was changed by somebody else since the plan was made",
            hint="run the command again for a new plan",
        )


def _blank(telling: Telling, wish: Wish) -> Record:
    current = current_of(telling.contact, telling.facts)
    return replace(
        blank_record(telling.contact, telling.server, Act.SWITCH),
        release=current.id,
        algo=telling.plan.new.algo,
        knobs=dict(telling.plan.new.knobs),
        previous=(current.id, telling.plan.old.algo),
        invocation=telling.facts.unit.invocation,
        reason=wish.reason,
        live=True,
    )


def _done(turn: Turn, telling: Telling, record: Record) -> tuple[Record, SpecctlError | None]:
    """Tell it and prove it; tell it back where that fails."""
    turn.reporter.step(turn.host, "tell", str(telling.plan.new))
    reply = Engine(turn.contact, telling.server).set(telling.plan.tell)
    turn.durations_s["told"] = reply.took_s
    if untouched(reply):
        error = RemoteCommandError(
            f"the engine took nothing: {refusal(reply)}", hint=f"specctl logs --host {turn.host}"
        )
        return replace(record, result=Result.FAILED, cause=error.message), error
    session = turn.contact.session
    try:
        cause, proof = _proven(turn, telling, reply)
    except ConnectError as lost:
        _found_again(turn, telling, session, lost)
        cause, proof = lost.message, None
    if proof is None:
        return _back(turn, telling, record, cause)
    turn.final("proof", " · ".join(proof.evidence))
    turn.final(
        "switched", f"{telling.plan.new}, told in {reply.took_s * 1000:.0f} ms; a start would run {telling.plan.starts}"
    )
    return replace(record, result=Result.DONE, proof="proven", evidence=proof.evidence), None


def _found_again(turn: Turn, telling: Telling, session: HostSession, lost: ConnectError) -> None:
    """Connect again; raises what was lost, with what the engine does meanwhile, where the host does not come back."""
    try:
        resume(turn, session, lost)
    except ConnectError as error:
        error.message = f"{error.message}: the engine goes on with {telling.plan.new}, which is not proven"
        error.hint = f"specctl health --host {turn.host}, once it answers again"
        raise


def _proven(turn: Turn, telling: Telling, reply: Reply) -> tuple[str, Proven | None]:
    """Hold the engine's own word against what it was told, then run smoke and proof; returns why it is not proven.

    An answer that was lost may have been a yes: what counts is what the engine says that it runs.
    """
    wrong = differing(Engine(turn.contact, telling.server).info(), telling.plan.tell)
    if wrong is None or wrong:
        said = "; ".join(wrong[:3]) if wrong else "/server_info tells no internal state"
        return said if accepted(reply) else f"{refusal(reply)}; {said}", None
    question = Question(
        algo=algo_profile(telling.server, telling.plan.new.algo).after_a_change(),
        knobs=dict(telling.plan.new.knobs),
        started=telling.facts.unit,
        started_at_s=telling.facts.now_s or 0.0,
        opening=opening_of(turn.contact, telling.server, telling.facts.unit.invocation),
    )
    end = Gate(
        turn.contact,
        telling.server,
        question,
        show=lambda _: turn.reporter.step(turn.host, "proof", "a smoke is generated and judged"),
        interrupted=turn.interrupted,
    ).run()
    return (end.cause, end.proof) if end.healthy and isinstance(end.proof, Proven) else (end.cause, None)


def _back(turn: Turn, telling: Telling, record: Record, cause: str) -> tuple[Record, SpecctlError]:
    """Tell the engine what it ran before, whole: what it runs may not be known."""
    turn.reporter.step(turn.host, "restore", str(telling.plan.old))
    engine, before = Engine(turn.contact, telling.server), fields(telling.server.profile, telling.plan.old)
    reply = engine.set(before)
    wrong = differing(engine.info(), before)
    error: SpecctlError
    if wrong == ():
        turn.final("restored", f"{telling.plan.old}: {cause}")
        words = f"{cause}: the engine was told {telling.plan.old} again"
        error = RolledBackError(words, hint=f"specctl logs --host {turn.host}")
        return replace(record, result=Result.ROLLED_BACK, cause=cause), error
    why = f"{cause}; and back: {'; '.join(wrong[:3]) if wrong else refusal(reply)}"
    turn.final("failed", why)
    error = UnhealthyError(
        f"{why}. What it decodes with is not known",
        hint=f"specctl health --host {turn.host}; specctl restart --host {turn.host} starts what is deployed",
    )
    return replace(record, result=Result.FAILED, cause=why), error
