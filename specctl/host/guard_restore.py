"""What the guard does when a deploy is taken back: activate the release before, stop what runs, start; or stop for good.

Each step may be done again after a crash. It acts by the same ops as an operator, under a lease of its own.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Dict, Mapping, Optional

from specctl.host import activate, clock, files, guard_look, guard_rules, guard_state, keeper, lease, services, session
from specctl.host.guard_state import GATING, GuardState
from specctl.host.states import State
from specctl.host.wire import LOCK_HELD, Args, Call, OpError

LEASE_S = 45.0
# A host that has only just booted may still be waiting for its network.
START_S = 300.0
NOTICE = "<5>"  # systemd's prefix of a line's priority


def say(text: str) -> None:
    """Write a line to the journal."""
    sys.stdout.write(f"{NOTICE}{text}\n")
    sys.stdout.flush()


def _call(folder: str, state: GuardState, op: str, more: Optional[Mapping[str, object]] = None) -> Mapping[str, object]:
    """Run one op of the session's as the guard."""
    fields: Dict[str, object] = {
        **state.target,
        "server": state.server,
        "dir": folder,
        "token": state.own,
        **(more or {}),
    }
    return session.perform(op, Call(0, Args(fields), lambda event: say(f"{op}: {event}")))


def hold(folder: str, state: GuardState) -> None:
    """Renew the guard's lease while this tick lasts, however long a stop takes."""
    fields: Dict[str, object] = {"dir": folder, "resume": state.own}
    keeper.acquire(Call(0, Args(fields), lambda event: say(str(event))))


def _save(folder: str, state: GuardState) -> None:
    assert state.own is not None
    with lease.fenced(folder, state.own):
        guard_state.save(folder, state)


def _failed(folder: str, state: GuardState, error: Exception) -> None:
    """Count a try that failed; one that failed because somebody took over is none."""
    if isinstance(error, OpError) and error.kind == LOCK_HELD:
        raise error
    say(f"{state.phase} failed: {error}")
    _save(folder, replace(state, tries=state.tries + 1))


def restore(folder: str, state: GuardState) -> None:
    """Put the release before back and start it, unless its process still runs; then it is gated, tick by tick."""
    try:
        unit = _put_back(folder, state)
    except (OpError, OSError) as error:
        _failed(folder, state, error)
        return
    started = replace(
        state,
        phase=GATING,
        tries=0,
        load_left_s=state.load_s,
        seen_s=clock.boottime_s(),
        boot=clock.boot_id(),
        rebooted=False,
        pinned=unit.invocation,
        restarts=unit.restarts,
        starts=state.starts + 1,
    )
    _save(folder, started)


def _put_back(folder: str, state: GuardState) -> State:
    """Activate, stop, start; returns the unit's state."""
    back = state.back
    assert back is not None, "without a release to go back to nothing is restored"
    service = services.of(Args(state.target))
    _call(folder, state, "release.activate", {"id": back.id, "algo": back.algo})
    unit = service.state()
    if guard_look.runs_back(folder, state, service, unit):
        if unit.invocation == state.before:
            # The note says that the process is older than the activation, which is true and, here, no drift.
            files.remove(os.path.join(folder, activate.NOTE))
        return unit
    _call(folder, state, "unit.stop", {"timeout_s": state.stop_s})
    _call(folder, state, "unit.start", {"timeout_s": START_S})
    return service.state()


def stop_for_good(folder: str, state: GuardState) -> Optional[bool]:
    """Stop the server, also for the next boot; take a first deploy off the service manager.

    Returns whether it is gone, None to try again.
    """
    try:
        _call(folder, state, "unit.stop", {"timeout_s": state.stop_s, "for_good": True})
        _call(folder, state, "unit.disable_remove" if state.back is None else "unit.disable")
    except (OpError, OSError) as error:
        if state.tries + 1 >= guard_rules.TRIES:
            say(f"the server could not be stopped: {error}")
            return False
        _failed(folder, state, error)
        return None
    return True
