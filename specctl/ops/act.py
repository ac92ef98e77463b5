"""The one act behind deploy, switch, rollback and restart: write, drain, swap, stop, start, gate; and back again when it fails.

Whatever happens, the host ends with exactly one gated release running or, where there was none before, with the server stopped;
a record says which (docs/architecture.md, "the act").
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from specctl.errors import ConnectError, NoHealthyReleaseError, RolledBackError, SpecctlError
from specctl.ops import turn as steps
from specctl.ops.drain import drain
from specctl.ops.gate import GateEnd
from specctl.ops.lossless import Baseline, compare_with, take_baseline
from specctl.ops.turn import Aim, Turn
from specctl.rollout.gate_types import GateState, Ready
from specctl.rollout.proof import Proven
from specctl.rollout.record import Record, Result
from specctl.rollout.story import clock, kind, story

LOG_TAIL_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """How much is checked: wait for the load at all, want a proof of the algo, compare greedy output with algo none."""

    gated: bool = True
    prove: bool = True
    lossless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an act ended: its record and, unless it did what was asked, the error that the command ends with."""

    record: Record
    error: SpecctlError | None = None


class Failure(Exception):  # noqa: N818  # not an error of specctl: an end of the gate that asks for the way back
    """The new release did not prove itself; carries why, and the gate's end where there was one."""

    def __init__(self, cause: str, end: GateEnd | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.end = end


def _replace_running(turn: Turn, aim: Aim) -> None:
    """Put the aim in the place of what runs: everything up to the start."""
    drain(turn)
    steps.activate(turn, aim)
    steps.stop(turn)


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
        steps.start(turn)
        return None
    end = _gated(turn, aim, prove=care.prove)
    if baseline is not None:
        said = compare_with(turn, baseline)
        if said.parted:
            raise Failure(said.text, end)
        turn.final("lossless", said.text)
    return end


def perform(turn: Turn, aim: Aim, previous: Aim | None, record: Record, care: Care) -> Ended:
    """Do the act and, when it fails, undo it; always returns, so that a record can be written."""
    began = time.monotonic()
    record = replace(record, release=aim.release, algo=aim.algo, knobs=aim.knobs)
    try:
        end = _swap_in(turn, aim, care)
    except Failure as failure:
        if failure.end is not None:
            tell_failure(turn, failure.end)
            record = replace(record, invocation=failure.end.state.invocation)
        ended = undo(turn, aim, previous, record, failure.cause)
    except ConnectError as error:
        ended = _lost(turn, aim, record, error)
    except SpecctlError as error:
        turn.final("failed", error.message)
        ended = undo(turn, aim, previous, record, error.message)
    else:
        ended = _done(turn, aim, record, end, began)
    turn.durations_s["total"] = time.monotonic() - began
    return replace(ended, record=replace(ended.record, durations_s=dict(turn.durations_s)))


def _done(turn: Turn, aim: Aim, record: Record, end: GateEnd | None, began: float) -> Ended:
    """Say and record that it serves."""
    took = clock(time.monotonic() - began)
    if end is None:
        turn.final("started", f"{aim}: not waited for, nothing is proven")
        return Ended(record=replace(record, result=Result.UNGATED))
    proven = end.proof if isinstance(end.proof, Proven) else None
    if proven:
        turn.final("proof", " · ".join(proven.evidence))
    turn.final("deployed", f"{aim}, {took}")
    return Ended(
        record=replace(
            record,
            result=Result.DONE,
            serving=(aim.release, aim.algo),
            proof="proven" if proven else None,
            evidence=proven.evidence if proven else (),
            load_s=end.state.elapsed_s,
            phases=phases_of(end.state),
            invocation=end.state.invocation,
        )
    )


def _lost(turn: Turn, aim: Aim, record: Record, error: ConnectError) -> Ended:
    """Say what is known when the host can no longer be reached: it goes on by itself, and nobody here can tell how it ends."""
    turn.final("lost", f"{error.message}; the host goes on with {aim} by itself")
    error.hint = f"specctl status --host {turn.host}, once it answers again"
    return Ended(record=replace(record, result=Result.LOST, cause=error.message), error=error)


def phases_of(state: GateState) -> tuple[tuple[str, float, float | None], ...]:
    """Return the load's phases as a record keeps them: name, when it began, how long it took."""
    return tuple((span.phase.value, span.began_s, span.took_s) for span in state.phases)


def tell_failure(turn: Turn, end: GateEnd) -> None:
    """Say in which phase it failed, why, what to do, and the log lines that matter."""
    if isinstance(end.state.verdict, Ready):
        turn.final("failed", f"proof   {end.cause}")
    for name, text in story(end.state, LOG_TAIL_LINES):
        if name != kind(end.state) or not isinstance(end.state.verdict, Ready):
            turn.final(name, text)
    if isinstance(end.state.verdict, Ready):
        for line in end.state.tail[-LOG_TAIL_LINES:]:
            turn.final("log", line)


def _restored(turn: Turn, previous: Aim) -> GateEnd | None:
    """Bring the previous release back and gate it; None, with the reason told, when it does not come."""
    turn.interrupted.clear()
    turn.reporter.step(turn.host, "restore", str(previous))
    try:
        steps.activate(turn, previous)
        steps.stop(turn)
        # It served before: that it serves again is what matters now, its proof is not asked for anew.
        return _gated(turn, previous, prove=False)
    except Failure as failure:
        turn.final("failed", f"{previous} does not come back: {failure.cause}")
    except SpecctlError as error:
        turn.final("failed", f"restoring {previous}: {error.message}")
    return None


def undo(turn: Turn, aim: Aim, previous: Aim | None, record: Record, cause: str) -> Ended:
    """Restore what served before, or stop the server; returns the record and the error that the command ends with."""
    end = _restored(turn, previous) if previous is not None else None
    if previous is not None and end is not None:
        turn.final("restored", f"{previous}, healthy after {clock(end.state.elapsed_s)}")
        kept = replace(
            record,
            result=Result.ROLLED_BACK,
            cause=cause,
            serving=(previous.release, previous.algo),
            load_s=end.state.elapsed_s,
            phases=phases_of(end.state),
            proof="proven" if isinstance(end.proof, Proven) else None,
        )
        return Ended(
            record=kept,
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
    """Stop the server for good; a first deploy is taken off the service manager too, so that no boot starts it."""
    try:
        steps.stop(turn)
        if first:
            turn.call("unit.disable_remove", {})
    except SpecctlError as error:
        turn.final("failed", f"the server could not be stopped: {error.message}")
        return False
    turn.final("stopped", "no healthy release is left on this server")
    return True
