"""One tick of the guard, started by its timer: look, note, decide, act. Each tick ends by itself and may be killed at any moment.

Run as `guard.py FOLDER SERVER UNIT_DIR`. What it says reaches the journal of the guard's unit.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Optional

from specctl.host import guard_end, guard_files, guard_look, guard_restore, guard_rules, guard_state, lease
from specctl.host.guard_restore import say
from specctl.host.guard_rules import GUARD, Look
from specctl.host.guard_state import OVER, RESTORING, STOPPING, GuardState
from specctl.host.wire import LOCK_HELD, OpError

OWNER = "guard"


def tick(folder: str, server: str, unit_dir: str) -> None:
    """Do one tick; a guard without a state was confirmed, and is removed."""
    seen = guard_state.raw(folder)
    if seen is None:
        own = lease.acquire(folder, owner=OWNER, reason="removes itself", ttl_s=guard_restore.LEASE_S, steal=False)
        try:
            guard_files.remove(folder, server, unit_dir, from_within=True)
        finally:
            lease.release(folder, own.token)
        return
    state = guard_state.parse(seen)
    look = guard_look.look_at(folder, state)
    state = guard_rules.noted(state, look)
    decision = guard_rules.decide(state, look)
    if isinstance(decision, guard_rules.Wait):
        _keep(folder, seen, state, look)
    else:
        _act(folder, seen, state, decision, unit_dir)


def _keep(folder: str, seen: bytes, state: GuardState, look: Look) -> None:
    """Write the state back, unless somebody armed or confirmed meanwhile; renew the guard's own lease."""
    with lease.mutex(folder):
        if state.phase not in OVER and guard_state.raw(folder) == seen:
            guard_state.save(folder, state)
    if look.holder == GUARD and state.own is not None:
        lease.confirm(folder, state.own)


def _take(folder: str, seen: bytes, state: GuardState, decision: guard_rules.Decision) -> Optional[GuardState]:
    """Take the lease and enter the decision's phase in one step; None when somebody armed, confirmed or took over meanwhile."""
    phase = {guard_rules.Restore: RESTORING, guard_rules.Stop: STOPPING}.get(type(decision), state.phase)
    reason = "removes itself" if isinstance(decision, guard_rules.Over) else getattr(decision, "reason", "")
    with lease.mutex(folder):
        if guard_state.raw(folder) != seen or guard_look.holder(folder, state) not in guard_rules.free_for(state):
            return None
        why = f"{state.act} by {state.who}: {reason}"
        own = lease.grant(folder, owner=OWNER, reason=why, ttl_s=guard_restore.LEASE_S, steal=True)
        taken = replace(state, own=own.token)
        if not isinstance(decision, guard_rules.Over):
            taken = replace(taken, reason=reason, phase=phase, tries=state.tries if phase == state.phase else 0)
            guard_state.save(folder, taken)
    return taken


def _act(folder: str, seen: bytes, state: GuardState, decision: guard_rules.Decision, unit_dir: str) -> None:
    """Begin, or go on with, what was decided, under a lease of the guard's own."""
    taken = _take(folder, seen, state, decision)
    if taken is None:
        return
    guard_restore.hold(folder, taken)
    if isinstance(decision, guard_rules.Restore):
        say(f"taking it back: {decision.reason}")
        guard_restore.restore(folder, taken)
    elif isinstance(decision, guard_rules.Stop):
        say(f"stopping the server: {decision.reason}")
        gone = guard_restore.stop_for_good(folder, taken)
        if gone is not None:
            guard_end.clear(folder, guard_end.stopped(folder, taken, decision, gone=gone), unit_dir)
    elif isinstance(decision, guard_rules.Finish):
        say(f"{decision.end}: {decision.reason}")
        guard_end.clear(folder, guard_end.finished(folder, taken, decision), unit_dir)
    else:
        guard_end.clear(folder, taken, unit_dir)


def main() -> None:
    """Do one tick; what fails is said in the journal, and the next tick tries again."""
    folder, server, unit_dir = sys.argv[1:4]
    try:
        tick(folder, server, unit_dir)
    except OpError as error:
        say(error.message)
        sys.exit(0 if error.kind == LOCK_HELD else 1)
    except OSError as error:
        say(f"{error.strerror}: {error.filename}")
        sys.exit(1)
