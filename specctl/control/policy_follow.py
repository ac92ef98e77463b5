"""The policy driven through a replay, a step at a time: the same decide() as the agent's, its sums kept at hand for speed.

It keeps the hours of the week as it goes, as the agent's profile does, and takes the model at its word for what a mode serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specctl.control import policy
from specctl.control.limits import Limits
from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.policy_book import Book
from specctl.control.policy_foresight import HOUR_S, hour_of_week
from specctl.control.policy_ledger import Ledger
from specctl.control.policy_state import LONG_AGO_S, State
from specctl.control.policy_time import aged
from specctl.control.policy_types import Costs, Hold, Now, View
from specctl.control.rates import Rates


@dataclass(slots=True)
class Hours:
    """Seconds at each concurrency by hour of the week; an hour tells of others once it is over."""

    done: dict[int, dict[float, float]] = field(default_factory=dict)
    current: dict[float, float] = field(default_factory=dict)
    end_s: float | None = None

    def watch(self, wall_s: float, concurrency: float, seconds: float) -> None:
        """Count a step in."""
        if self.end_s is None or wall_s >= self.end_s:
            self._close(wall_s)
        self.current[concurrency] = self.current.get(concurrency, 0.0) + seconds

    def _close(self, wall_s: float) -> None:
        if self.end_s is not None:
            kept = self.done.setdefault(hour_of_week(self.end_s - 1), {})
            for concurrency, seconds in self.current.items():
                kept[concurrency] = kept.get(concurrency, 0.0) + seconds
        self.current = {}
        self.end_s = (wall_s // HOUR_S + 1) * HOUR_S

    def seconds(self, hour_of_week: int) -> Mapping[float, float] | None:
        """Return that hour of past weeks, or else of the day before, where it was watched."""
        for back in (0, 24, 48):
            found = self.done.get((hour_of_week - back) % 168)
            if found is not None:
                return found
        return None


class Follower:
    """Decides once a step; a step in which nothing can change costs a few additions."""

    def __init__(
        self,
        *,
        rates: Rates,
        costs: Costs,
        modes: tuple[Mode, ...],
        objective: Objective,
        start: Mode,
        limits: Limits | None = None,
        step_s: float = 1.0,
        wall_s: float = 0.0,
    ) -> None:
        self._view = View(mode=start, concurrency=None, rates=rates, costs=costs, modes=modes, objective=objective)
        # What the model says is what is served in a replay: there is nothing to try.
        self._limits = replace(limits or Limits(), trial_s=0.0)
        self._step_s = step_s
        self._wall_s = wall_s
        self._state = State.fresh(start, dwell_s=LONG_AGO_S)
        self._hours = Hours()
        self._books: dict[Mode, Book] = {}
        self._ledger = self._open(start)
        self._settled_s: float | None = None
        self._asleep_until_s = 0.0
        self._look_s = self._limits.look_s

    @property
    def mode(self) -> Mode:
        """Return the mode that it left running."""
        return self._mode

    def _open(self, mode: Mode) -> Ledger:
        if mode not in self._books:
            book = policy.book_of(replace(self._view, mode=mode), self._limits)
            if book is None:
                raise ValueError(f"{mode} is not among the modes of the replay")
            self._books[mode] = book
        self._mode = mode
        return Ledger(self._books[mode], self._state, self._limits)

    def choose(self, now_s: float, level: float, mode: Mode) -> Mode | None:
        """Return the mode to go to in the step that begins now, with `level` requests in it; None: stay."""
        if mode is not self._mode and mode != self._mode:
            raise ValueError(f"{mode} runs, and {self._mode} was left running")
        self._ledger.advance(self._step_s, level)
        wall_s = self._wall_s + now_s
        self._hours.watch(wall_s, level, self._step_s)
        look = now_s >= self._look_s
        if look:
            self._look_s = now_s + self._limits.look_s
        if not look and (now_s < self._asleep_until_s or self._ledger.wants(level) is None):
            return None
        return self._ask(now_s, level, look=look)

    def _ask(self, now_s: float, level: float, *, look: bool) -> Mode | None:
        now = Now(mono_s=now_s, wall_s=self._wall_s + now_s)
        self._settle(now, look=look)
        history = self._hours if self._hours.done else None
        view = replace(self._view, mode=self._mode, concurrency=level, history=history)
        answer = policy.decide(view, self._state, self._limits, now, self._ledger)
        if isinstance(answer, Hold):
            if answer.why.rule not in {"gain-too-small", "no-other-mode"}:
                self._asleep_until_s = now_s + (answer.until_s or self._limits.look_s)
            return None
        self._state = policy.arrived(self._state, self._mode, answer, self._limits, now, away_s=answer.price.seconds)
        # As in the sums, the step that begins counts as spent: the first one in the new mode is a step of its dwell.
        self._settled_s = now_s + max(answer.price.seconds - self._step_s, 0.0)
        self._ledger = self._open(answer.mode)
        self._asleep_until_s = 0.0
        return answer.mode

    def _settle(self, now: Now, *, look: bool) -> None:
        since_s = now.mono_s if self._settled_s is None else now.mono_s - self._settled_s
        self._settled_s = now.mono_s
        state = aged(self._state, max(since_s, 0.0), now)
        self._state = self._ledger.settled(state, since_look_s=0.0 if look else self._step_s)
