"""The passing of time for the policy: by the monotonic clock within a boot, by the wall clock from one boot to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specctl.control.limits import DAY_S
from specctl.control.policy_state import Spent, State
from specctl.control.policy_types import Now

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Seconds between two calls; `trusted`: the load during them was the load that is seen now, if they are few."""

    seconds: float
    trusted: bool


def elapsed(before: Now | None, now: Now) -> Gap:
    """Return the time since; after a reboot by the wall clock, which may be wrong, at most a day; where a clock went back none."""
    if before is None:
        return Gap(seconds=0.0, trusted=True)
    if before.boot == now.boot:
        seconds = now.mono_s - before.mono_s
        return Gap(seconds=max(seconds, 0.0), trusted=seconds >= 0)
    return Gap(seconds=min(max(now.wall_s - before.wall_s, 0.0), DAY_S), trusted=False)


def aged(state: State, seconds: float, now: Now) -> State:
    """Return the state so many seconds later: the mode has run for longer, the day's changes fall out, a freeze thaws."""
    frozen = state.frozen
    if frozen is not None:
        frozen = replace(frozen, left_s=frozen.left_s - seconds) if frozen.left_s > seconds else None
    return replace(state, at=now, clock_s=state.clock_s + seconds, dwell_s=state.dwell_s + seconds, frozen=frozen)


def spent(state: State) -> tuple[int, float]:
    """Return how many changes were made in the last 24 hours, to an hour's exactness, and the seconds that they took."""
    lately = [one for one in state.spent if state.clock_s - one.at_s <= DAY_S]
    return sum(one.count for one in lately), sum(one.away_s for one in lately)


def spending(state: State, away_s: float) -> tuple[Spent, ...]:
    """Return the day's changes with one more that was made just now; those of one hour are kept together."""
    kept = state.spent
    if kept and state.clock_s - kept[-1].at_s < HOUR_S:
        last = kept[-1]
        return (*kept[:-1], Spent(at_s=last.at_s, count=last.count + 1, away_s=last.away_s + away_s))
    kept = tuple(one for one in kept if state.clock_s - one.at_s <= DAY_S)
    return (*kept, Spent(at_s=state.clock_s, count=1, away_s=away_s))
