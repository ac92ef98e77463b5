"""The one act behind deploy, switch, rollback and restart: write, drain, swap, stop, start, gate; and back again when it fails.

Whatever happens, the host ends with exactly one gated release running or, where there was none before, with the server stopped;
a record says which (docs/architecture.md, "the act").
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from specctl.errors import ConnectError, LockHeldError, NoHealthyReleaseError, RolledBackError, SpecctlError, for_host
from specctl.ops import guard
from specctl.ops import turn as steps
from specctl.ops.drain import drain
from specctl.ops.gate import INTERRUPTED, GateEnd
from specctl.ops.lossless import Baseline, compare_with, take_baseline
from specctl.ops.turn import Aim, Turn
from specctl.rollout.gate_types import Ready
from specctl.rollout.proof import Claimed, Proven
from specctl.rollout.record import Record, Result
from specctl.rollout.story import clock, kind, story

LOG_TAIL_LINES = 12
UNCHANGED = "nothing was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """How much is checked: wait for the load at all, want a proof of the algo, compare greedy output with algo none."""

    gated: bool = True
    prove: bool = True
    lossless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an act ended: its record and, unless it did what was asked, the error that the command ends with.

    `ours` is false when the host's record of it is not for us to write: it is lost, or somebody else ended the act.
    """

    record: Record
    error: SpecctlError | None = None
    ours: bool = True


class Failure(Exception):  # noqa: N818  # not an error of specctl: an end of the gate that asks for the way back
    """The new release did not prove itself; carries why, and the gate's end where there was one."""

    def __init__(self, cause: str, end: GateEnd | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.end = end


def _replace_running(turn: Turn, aim: Aim) -> None:
    """Put the aim in the place of what runs: everything up to the start; from the first step on the guard is armed."""
    guard.arm(turn, aim)
    drain(turn)
    _heed(turn)
    steps.activate(turn, aim)
    steps.stop(turn)
    _heed(turn)


def _heed(turn: Turn) -> None:
    """End the act here when the operator has interrupted it, so that nothing new is started first."""
    if turn.interrupted.is_set():
        raise Failure(INTERRUPTED)


def _gated(turn: Turn, aim: Aim, *, prove: bool) -> GateEnd:
    end = steps.bring_up(turn, aim, prove=prove)
    if not end.healthy:
        raise Failure(end.cause, end)
    return end


def _swap_in(turn: Turn, aim: Aim, care: Care) -> GateEnd | None:
    """Do the whole act towards an aim; None when nobody wanted to wait for the load."""
    steps.write(turn, aim)
    baseline: Baseline | None = None
    if care.lossless and aim.algo != Baseline.ALGO:
        plain = replace(aim, algo=Baseline.ALGO, write=None, knobs={})
        _replace_running(turn, plain)
        _gated(turn, plain, prove=care.prove)
        baseline = take_baseline(turn)
    _replace_running(turn, aim)
    if not care.gated:
        steps.start(turn, aim)
        return None
    end = _gated(turn, aim, prove=care.prove)
    if baseline is not None:
        said = compare_with(turn, baseline)
        if said.parted:
            raise Failure(said.text, end)
        turn.final("lossless", said.text)
    return end


def perform(turn: Turn, aim: Aim, record: Record, care: Care) -> Ended:
    """Do the act and, when it fails, undo it; always returns, so that a record can be written."""
    began = time.monotonic()
    record = replace(record, release=aim.release, algo=aim.algo, knobs=aim.knobs)
    ended = known(turn, aim, record, lambda: _performed(turn, aim, record, care, began))
    turn.durations_s["total"] = time.monotonic() - began
    return replace(ended, record=replace(ended.record, durations_s=dict(turn.durations_s)))


def known(turn: Turn, aim: Aim, record: Record, work: Callable[[], Ended]) -> Ended:
    """Do a part of the act; when the host is lost, or the lease is somebody else's now, say what is known of its end."""
    try:
        try:
            return work()
        except LockHeldError as error:
            return overtaken(turn, record, error)
    except ConnectError as error:
        return _lost(turn, aim, record, error)


def _performed(turn: Turn, aim: Aim, record: Record, care: Care, began: float) -> Ended:
    """Do the act; undo it when it fails after something was changed."""
    try:
        end = _swap_in(turn, aim, care)
    except Failure as failure:
        if failure.end is not None:
            tell_failure(turn, failure.end)
            record = replace(record, invocation=failure.end.state.invocation)
        if turn.changed:
            return undo(turn, aim, record, failure.cause)
        return _unchanged(turn, record, RolledBackError(f"{failure.cause}: {UNCHANGED}", host=turn.host))
    except (ConnectError, LockHeldError):
        raise
    except SpecctlError as error:
        turn.final("failed", error.message)
        return undo(turn, aim, record, error.message) if turn.changed else _unchanged(turn, record, error)
    return _done(turn, aim, record, end, began)


def _unchanged(turn: Turn, record: Record, error: SpecctlError) -> Ended:
    """End an act that failed before anything was changed: what served serves."""
    serving = (turn.back.release, turn.back.algo) if turn.back and turn.facts.guard is None else None
    cause = error.message if UNCHANGED in error.message else f"{error.message} ({UNCHANGED})"
    return Ended(record=replace(record, result=Result.FAILED, cause=cause, serving=serving), error=error)


def _done(turn: Turn, aim: Aim, record: Record, end: GateEnd | None, began: float) -> Ended:
    """Say and record that it serves."""
    took = clock(time.monotonic() - began)
    if end is None:
        turn.final("started", f"{aim}: not waited for, nothing is proven")
        return Ended(record=replace(record, result=Result.UNGATED))
    if isinstance(end.proof, Proven):
        turn.final("proof", " · ".join(end.proof.evidence))
    elif isinstance(end.proof, Claimed):
        turn.final("warning", f"nothing is proven: {'; '.join(end.proof.missing)}")
    turn.final("deployed", f"{aim}, {took}")
    return Ended(record=replace(served(record, aim, end), result=Result.DONE, invocation=end.state.invocation))


def _lost(turn: Turn, aim: Aim, record: Record, error: ConnectError) -> Ended:
    """Say what is known when the host can no longer be reached: its guard, where there is one, takes the act back."""
    after = f"the host goes on with {aim} by itself"
    if turn.armed:
        after = f"the guard takes it back to {turn.back}" if turn.back else "the guard stops the server"
    turn.final("lost", f"{error.message}; {after}")
    error.message = f"{error.message}: {after}"
    error.hint = f"specctl status --host {turn.host}, once it answers again"
    return Ended(record=replace(record, result=Result.LOST, cause=error.message), error=error, ours=False)


def overtaken(turn: Turn, record: Record, error: LockHeldError) -> Ended:
    """End an act whose lease is somebody else's now; when that is the guard, wait for how it ends."""
    row = guard.verdict(turn) if guard.guards(turn.contact.host) else None
    if row is None:
        return Ended(record=replace(record, result=Result.FAILED, cause=error.message), error=error, ours=False)
    cause = str(row.get("cause"))
    result = next((result for result in Result if result.value == row.get("result")), Result.FAILED)
    serving = (turn.back.release, turn.back.algo) if turn.back and row.get("serving") else None
    turn.final("guard", f"{result.value}: {cause}")
    record = replace(record, result=result, cause=f"the guard: {cause}", serving=serving)
    hint = f"specctl history --host {turn.host}"
    if serving is not None:
        message = f"the guard took it back to {turn.back} ({cause})"
        return Ended(record=record, error=RolledBackError(message, hint=hint, host=turn.host), ours=False)
    message = f"the guard stopped the server, no healthy release is left ({cause})"
    return Ended(record=record, error=NoHealthyReleaseError(message, hint=hint, host=turn.host), ours=False)


def served(record: Record, aim: Aim, end: GateEnd) -> Record:
    """Return the record with what serves now: how long it loaded, phase by phase, and what proved it."""
    proven = end.proof if isinstance(end.proof, Proven) else None
    return replace(
        record,
        serving=(aim.release, aim.algo),
        proof="proven" if proven else None,
        evidence=proven.evidence if proven else (),
        load_s=end.state.elapsed_s,
        phases=tuple((span.phase.value, span.began_s, span.took_s) for span in end.state.phases),
    )


def tell_failure(turn: Turn, end: GateEnd) -> None:
    """Say in which phase it failed, why, what to do, and the log lines that matter."""
    if isinstance(end.state.verdict, Ready):
        turn.final("failed", f"proof   {end.cause}")
    for name, text in story(end.state, LOG_TAIL_LINES):
        if name != kind(end.state) or not isinstance(end.state.verdict, Ready):
            turn.final(name, for_host(text, turn.host))
    if isinstance(end.state.verdict, Ready):
        for line in end.state.tail[-LOG_TAIL_LINES:]:
            turn.final("log", line)


def _restored(turn: Turn, aim: Aim, previous: Aim) -> GateEnd | None:
    """Bring the previous release back and gate it; None, with the reason told, when it does not come."""
    turn.interrupted.clear()
    turn.reporter.step(turn.host, "restore", str(previous))
    try:
        guard.arm(turn, aim)
        steps.activate(turn, previous)
        steps.stop(turn)
        # It served before: that it serves again is what matters now, its proof is not asked for anew.
        return _gated(turn, previous, prove=False)
    except Failure as failure:
        turn.final("failed", f"{previous} does not come back: {failure.cause}")
    except (ConnectError, LockHeldError):
        raise
    except SpecctlError as error:
        turn.final("failed", f"restoring {previous}: {error.message}")
    return None


def undo(turn: Turn, aim: Aim, record: Record, cause: str) -> Ended:
    """Restore what served before, or stop the server; returns the record and the error that the command ends with."""
    previous = turn.back
    end = _restored(turn, aim, previous) if previous is not None else None
    if previous is not None and end is not None:
        turn.final("restored", f"{previous}, healthy after {clock(end.state.elapsed_s)}")
        return Ended(
            record=replace(served(record, previous, end), result=Result.ROLLED_BACK, cause=cause),
            error=RolledBackError(
                f"{aim.algo} did not come up ({cause}): rolled back to {previous}",
                hint=f"specctl logs --host {turn.host} --release {aim.release}",
                host=turn.host,
            ),
        )
    stopped = _stopped(turn, first=previous is None)
    return Ended(
        record=replace(record, result=Result.STOPPED if stopped else Result.FAILED, cause=cause),
        error=NoHealthyReleaseError(
            f"{aim.algo} did not come up ({cause}), and no healthy release is left: "
            + ("the server is stopped" if stopped else "and the server could not be stopped"),
            hint=f"specctl logs --host {turn.host}",
            host=turn.host,
        ),
    )


def _stopped(turn: Turn, *, first: bool) -> bool:
    """Stop the server for good, so that no boot starts it; a first deploy is taken off the service manager too."""
    try:
        steps.stop(turn, for_good=True)
        turn.call("unit.disable_remove" if first else "unit.disable", {})
    except (ConnectError, LockHeldError):
        raise
    except SpecctlError as error:
        turn.final("failed", f"the server could not be stopped: {error.message}")
        return False
    turn.final("stopped", "no healthy release is left on this server")
    return True
