"""Tell a verdict to people: what happened, because of what, which lines say so, what to do; as (name, text) pairs, in order.

Pure; ops reports the pairs, ui prints them, records keep the first. Engine text in it is stripped of control characters; whoever
shows or stores it redacts known secrets first.
"""

from __future__ import annotations

import signal
from typing import assert_never

from specctl.rollout.gate_types import (
    Dead,
    Failed,
    GateState,
    How,
    Loading,
    Phase,
    Ready,
    Signal,
    Slow,
    Stalled,
    TimedOut,
)

LOG_LINES = 3
_SIGNAL_BASE = 128
_SPIN_HINT = "only CPU time moves before any weights load: the ranks spin in NCCL; check NCCL_* and the fabric"

Story = tuple[tuple[str, str], ...]


def story(state: GateState, log_lines: int = LOG_LINES) -> Story:
    """Return the lines that tell the verdict: its own first, then because, log, remedy where there are such."""
    return ((kind(state), headline(state)), *_because(state), *_log(state, log_lines), *_remedy(state))


def kind(state: GateState) -> str:
    """Return the verdict as one lower-case word, the same in every output."""
    match state.verdict:
        case Loading():
            return "loading"
        case Slow():
            return "slow"
        case Ready():
            return "ready"
        case Dead():
            return "dead"
        case Failed():
            return "failed"
        case Stalled():
            return "stalled"
        case TimedOut():
            return "timed-out"
        case _:
            assert_never(state.verdict)


def headline(state: GateState) -> str:
    """Return one line: the phase, the time since the start and what happened."""
    at = f"{state.phase.label}, {clock(state.elapsed_s)}"
    match state.verdict:
        case Loading():
            return f"{at}   {state.detail}" if state.detail else at
        case Slow(usual_s=usual):
            return f"{at}   longer than the {clock(usual)} it took before, still moving"
        case Ready(took_s=took):
            return f"after {clock(took)}"
        case Dead(how=how, exit_status=status):
            return f"{at}   {how.value}{exit_words(status)}"
        case Failed(fatal=fatal, title=title):
            return f"{at}   {fatal} {title}"
        case Stalled(for_s=quiet):
            return f"{at}   nothing moved for {clock(quiet)}"
        case TimedOut():
            return f"{at}   not ready within the limit"
        case _:
            assert_never(state.verdict)


def clock(seconds: float) -> str:
    """Return a duration as people read it off a clock: 0:07, 12:34, 1:02:03."""
    whole = max(round(seconds), 0)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def exit_words(status: int | None) -> str:
    """Return the exit status in words: a signal by its name, nothing where it is not known."""
    if status is None:
        return ""
    if status > _SIGNAL_BASE:
        try:
            return f", exit status {status} ({signal.Signals(status - _SIGNAL_BASE).name})"
        except ValueError:
            pass
    return f", exit status {status}"


def _because(state: GateState) -> Story:
    match state.verdict:
        case Failed(cause=cause):
            return tuple(("because", line) for line in cause)
        case Stalled(watched=watched):
            return (("because", f"watched {_last_values(watched)}"),)
        case TimedOut(moving=moving):
            return (("because", f"still moving: {', '.join(moving)}" if moving else "nothing moved any more"),)
        case Dead(how=How.INVOCATION | How.RESTARTS):
            return (
                (
                    "because",
                    "the service manager started it again: the first start is dead, this is not it still loading",
                ),
            )
        case _:
            return ()


def _last_values(watched: tuple[Signal, ...]) -> str:
    return ", ".join(str(each) for each in watched) or "nothing: no signal is known"


def _log(state: GateState, count: int) -> Story:
    """Return the log's last lines for an end that the log does not name; a failure's own lines are told already."""
    if not isinstance(state.verdict, Dead | Stalled | TimedOut) or count <= 0:
        return ()
    return tuple(("log", line) for line in state.tail[-count:])


def _remedy(state: GateState) -> Story:
    match state.verdict:
        case Failed(remedy=remedy):
            return (("remedy", remedy),)
        case TimedOut(moving=("CPU time",), phase=Phase.START | Phase.DISTRIBUTED):
            return (("remedy", _SPIN_HINT),)
        case TimedOut(moving=moving):
            return (
                (
                    "remedy",
                    "raise limits.load in the inventory: it was still loading"
                    if moving
                    else "see the log: `specctl logs --host H`",
                ),
            )
        case Stalled():
            return (("remedy", _stalled_hint(state.phase)),)
        case _:
            return ()


def _stalled_hint(phase: Phase) -> str:
    if phase is Phase.DISTRIBUTED:
        return "ranks wait for each other: check NCCL_*, P2P and IOMMU; NCCL_DEBUG=INFO says where"
    if phase in (Phase.TARGET_WEIGHTS, Phase.DRAFT_WEIGHTS):
        return "the storage does not deliver: read a weight file by hand on the host; check mounts and dmesg"
    return "look at the processes: a stopped or blocked scheduler shows as state T or D in ps"
