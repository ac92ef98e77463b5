"""Decide what the guard does next, from what it remembers and one look at the host; pure: no clock, file or process.

`noted` ages the state by a look, `decide` says what to do. The rules are in docs/guard.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple, Union

from specctl.host.guard_state import GATING, OVER, RESTORING, STOPPING, WATCHING, GuardState

OPERATOR = "operator"  # the lease of the act that armed the guard is alive
GUARD = "guard"  # the guard's own is
OTHER = "other"  # somebody else's is
NOBODY = "nobody"

UNTOUCHED = "untouched"
RESTORED = "restored"

UP = ("active", "activating", "reloading")
AUTO_RESTART = "auto-restart"
# A release that is put back is started this often at most, each time after a reboot; a step that fails is tried this often.
STARTS = 3
TRIES = 3


@dataclass(frozen=True)
class Look:
    """The host at one moment; `runs_back`: what runs, and what a boot would start, is the release to go back to.

    `active` None: the service manager did not say. `ready`: the server's own processes hold its port and /ready answers 200.
    """

    boot: str
    now_s: float
    holder: str
    active: Optional[str] = None
    sub: Optional[str] = None
    invocation: Optional[str] = None
    restarts: Optional[int] = None
    ready: bool = False
    runs_back: bool = False

    @property
    def down(self) -> bool:
        """Claim that the unit does not run, or only waits to be started again after a crash."""
        return self.active is not None and (self.active not in UP or (self.sub or "").startswith(AUTO_RESTART))


@dataclass(frozen=True)
class Wait:
    """Look again at the next tick."""

    why: str


@dataclass(frozen=True)
class Restore:
    """Put back what was there before, or go on with that."""

    reason: str


@dataclass(frozen=True)
class Stop:
    """Stop the server, or go on with that: no healthy release is left."""

    reason: str


@dataclass(frozen=True)
class Finish:
    """Record how it ended, with what serves: nothing had been changed, or what was there before is back."""

    end: str
    reason: str


@dataclass(frozen=True)
class Over:
    """It was confirmed, or its end is decided: write the record if that is missing, and remove the guard."""


Decision = Union[Wait, Restore, Stop, Finish, Over]


def noted(state: GuardState, look: Look) -> GuardState:
    """Return the state after a look: less time left, a reboot noticed, the new start pinned, readiness dated.

    A reboot costs no time: what was left when the guard last looked is left. An operator that comes back ends the time that it
    had for that.
    """
    if state.phase in OVER:
        return state
    same = state.boot == look.boot
    passed_s = max(0.0, look.now_s - state.seen_s) if same else 0.0
    state = replace(
        state,
        boot=look.boot,
        seen_s=look.now_s,
        rebooted=state.rebooted or not same,
        hard_left_s=state.hard_left_s - passed_s,
        confirm_left_s=None if state.confirm_left_s is None else state.confirm_left_s - passed_s,
        load_left_s=None if state.load_left_s is None else state.load_left_s - passed_s,
    )
    if look.holder == OPERATOR:
        state = replace(state, confirm_left_s=None)
    if state.phase != WATCHING or not _is_new(state, look):
        return state
    if look.holder == OPERATOR or state.pinned is None:
        state = replace(state, pinned=look.invocation, restarts=look.restarts)
    if look.ready and state.confirm_left_s is None and state.pinned == look.invocation:
        state = replace(state, confirm_left_s=state.confirm_s)
    return state


def _is_new(state: GuardState, look: Look) -> bool:
    """Claim that a start later than the one found when the guard was armed is under way or has come up."""
    return look.active in UP and look.invocation is not None and look.invocation != state.before


def free_for(state: GuardState) -> Tuple[str, ...]:
    """Return whose live lease keeps the guard from nothing: only while it watches may it act against its own operator's."""
    return (NOBODY, GUARD, OPERATOR) if state.phase == WATCHING else (NOBODY, GUARD)


def decide(state: GuardState, look: Look) -> Decision:
    """Say what to do about a state that `look` has been noted in."""
    if look.holder not in free_for(state):
        return Wait("somebody else holds the lease on the server")
    if state.phase in OVER:
        return Over()
    if state.phase == RESTORING:
        return _restoring(state)
    if state.phase == GATING:
        return _gating(state, look)
    if state.phase == STOPPING:
        return Stop(state.reason or "")
    return _watching(state, look)


def _watching(state: GuardState, look: Look) -> Decision:
    if state.hard_left_s <= 0:
        return _back(state, look, f"nobody confirmed it within {state.hard_s:.0f} s")
    if look.holder == OPERATOR:
        return Wait("the operator is at work")
    gone = f"{state.who} was gone"
    if state.rebooted:
        return _back(state, look, f"the host was restarted and {gone}")
    if look.active is None:
        return Wait("the service manager does not say how the server is")
    if look.down:
        return _back(state, look, f"{gone} and the server was not running ({look.active})")
    if look.invocation == state.before:
        return _back(state, look, f"{gone} before the new server was started")
    if (look.invocation, look.restarts) != (state.pinned, state.restarts):
        return _back(state, look, f"{gone} and the new server died")
    if state.confirm_left_s is not None and state.confirm_left_s <= 0:
        return _back(state, look, f"{gone}; it was ready, but nobody confirmed it within {state.confirm_s:.0f} s")
    return Wait(f"{gone}; the new server is {'ready' if state.confirm_left_s is not None else 'loading'}")


def _back(state: GuardState, look: Look, reason: str) -> Decision:
    """Restore, unless what was there before still runs untouched; stop where nothing was."""
    if state.back is None:
        return Stop(reason)
    if look.runs_back and look.invocation is not None and look.invocation == state.before and not state.rebooted:
        return Finish(UNTOUCHED, f"{reason}; nothing had been changed")
    return Restore(reason)


def _restoring(state: GuardState) -> Decision:
    reason = state.reason or ""
    if state.back is None:
        return Stop(reason)
    if state.tries >= TRIES:
        return Stop(f"{reason}; {state.back} could not be put back in {TRIES} tries")
    if state.starts >= STARTS:
        return Stop(f"{reason}; the host was restarted {STARTS} times while {state.back} was loading")
    return Restore(reason)


def _gating(state: GuardState, look: Look) -> Decision:
    reason, back = state.reason or "", state.back
    if state.rebooted:
        return _restoring(state)
    if look.active is None and (state.load_left_s or 0.0) > 0:
        return Wait("the service manager does not say how the server is")
    if look.down or (look.invocation, look.restarts) != (state.pinned, state.restarts):
        return Stop(f"{reason}; {back} died while it was loading")
    if look.ready:
        return Finish(RESTORED, reason)
    if (state.load_left_s or 0.0) <= 0:
        return Stop(f"{reason}; {back} was not ready within {state.load_s:.0f} s")
    return Wait(f"{back} is loading")
