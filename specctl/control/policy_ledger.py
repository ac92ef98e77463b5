"""The sums that a decision is taken from, kept tick by tick: work, large gains, and the pace of serving, which prices a change.

Modes have regret (the best mode's worth per second less their own) and a change has a price (its seconds times the pace). `work` is
the work function of the metrical task system whose changes cost `most` prices, so that no mode's work is above another's by more
than that. The running mode is left for another once its work is above the other's by `most` prices, or by `least` prices when as
much was gathered by large gains alone; Limits.enough has both. policy.py has the bound.

Mutable, for speed: `policy.advance` makes one from a State and takes a State from it; a replay keeps one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from specctl.control.limits import Limits
from specctl.control.policy_book import Book, Row
from specctl.control.policy_state import State

SLOW = 10.0
"""The slow pace looks back over ten prices, so that one quiet minute among busy ones does not make a change look free."""
SLOW_LEAST_S = 60.0
FAST_LEAST_S = 1.0


@dataclass(slots=True)
class Pace:
    """Decayed means of the best mode's worth per second over two spans."""

    seconds: float
    fast: float = 0.0
    slow: float = 0.0

    def shares(self, seconds: float) -> tuple[float, float]:
        """Return what a stretch of that length weighs in both means."""
        spans = (max(self.seconds, FAST_LEAST_S), max(self.seconds * SLOW, SLOW_LEAST_S))
        return -math.expm1(-seconds / spans[0]), -math.expm1(-seconds / spans[1])

    @property
    def price(self) -> float:
        """Return what it costs to serve nothing for so long, in the objective's worth: at the busier of both paces."""
        return self.seconds * max(self.fast, self.slow)


class Ledger:
    """The sums for one running mode."""

    def __init__(self, book: Book, state: State, limits: Limits) -> None:
        self.book = book
        self.running = book.running
        self.work = [state.work.get(each, 0.0) for each in book.modes]
        self.gains = [state.gains.get(each, 0.0) for each in book.modes]
        self.watched_s = state.watched_s
        self.excess = state.excess
        self.paces = [Pace(one, *state.paces.get(one) or _nearest(state, one)) for one in book.spans]
        enough = [limits.enough(0.0 if price is None else price.seconds) for price in book.prices]
        self._least = [least for least, _ in enough]
        self._most = [most for _, most in enough]
        self._widest = max(self._most)
        self._warm = any(self.gains)
        self._seconds = 0.0
        self._shares: list[tuple[Pace, float, float]] = []

    def advance(self, seconds: float, concurrency: float) -> bool:
        """Count a stretch of constant concurrency in; returns whether it could be (what runs is known at that concurrency)."""
        row = self.book.row(concurrency)
        if row is None:
            return False
        self._watch(row.best, seconds)
        work = [before + regret * seconds for before, regret in zip(self.work, row.regrets, strict=True)]
        floor, own = min(work), work[self.running]
        if self.book.flat:
            top = floor + self.paces[0].price * self._widest
            if floor > 0 or max(work) > top:
                work = [(one if one < top else top) - floor for one in work]  # noqa: FURB136  # min() takes twice as long
        else:
            work = self._capped(work, floor)
        self.work = work
        self.excess = self.excess + own - floor - work[self.running] if work[self.running] > 0 else 0.0
        if row.led or self._warm:
            self.gains = [max(before + lead * seconds, 0.0) for before, lead in zip(self.gains, row.leads, strict=True)]
            self._warm = any(self.gains)
        return True

    def _watch(self, best: float, seconds: float) -> None:
        """Count a stretch into the paces; what was watched for less than a span is a plain mean."""
        if seconds != self._seconds:
            self._seconds = seconds
            self._shares = [(pace, *pace.shares(seconds)) for pace in self.paces]
        self.watched_s += seconds
        whole = seconds / self.watched_s
        for pace, fast, slow in self._shares:
            pace.fast += (best - pace.fast) * (fast if fast > whole else whole)  # noqa: FURB136  # max() takes twice as long
            pace.slow += (best - pace.slow) * (slow if slow > whole else whole)  # noqa: FURB136

    def _capped(self, work: list[float], floor: float) -> list[float]:
        """Bring every mode's work down to the least other plus the way from there; of one pass, for ways obey the triangle."""
        places = range(len(work))
        return [min(work[old] + self._way(old, new) * self._widest for old in places) - floor for new in places]

    def _way(self, old: int, new: int) -> float:
        if old == new:
            return 0.0
        place = self.book.span_at[old][new]
        if place is not None:
            return self.paces[place].price
        return 0.0 if self.book.ways[old][new] == 0 else math.inf

    def price(self, place: int) -> float:
        """Return the price of going from the running mode to another, in the objective's worth; inf where there is no way."""
        return self._way(self.running, place)

    def advantage(self, place: int) -> float:
        """Return by how much the running mode's work is above another's."""
        return self.work[self.running] - self.work[place]

    def needed(self, place: int) -> float:
        """Return the advantage at which the rule goes to a mode: that of large gains, when most of it came from them."""
        ahead = self.advantage(place)
        large = ahead > 0 and self.gains[place] * 2 >= ahead
        return (self._least if large else self._most)[place] * self.price(place)

    def nearest(self) -> int | None:
        """Return the other mode that has the greatest part of what it needs; None where there is no way to any."""
        ways = [place for place in range(len(self.work)) if place != self.running and self.price(place) < math.inf]
        return max(ways, key=self._part, default=None)

    def _part(self, place: int) -> float:
        ahead, needed = self.advantage(place), self.needed(place)
        return ahead / needed if needed > 0 else math.copysign(math.inf, ahead)

    def wants(self, concurrency: float) -> int | None:
        """Return the mode that the rule would go to, with `concurrency` now; None: stay."""
        own = self.work[self.running]
        if own <= 0:
            return None
        row = self.book.row(concurrency)
        if row is None:
            return None
        found, most = None, 0.0
        for place, work in enumerate(self.work):
            ahead = own - work
            if ahead <= 0 or place == self.running or not self._fires(place, ahead):
                continue
            better = row.worths[place] > row.own or row.best == 0
            if better and (
                ahead > most or (ahead == most and found is not None and row.worths[place] > row.worths[found])
            ):
                found, most = place, ahead
        return found

    def _fires(self, place: int, ahead: float) -> bool:
        price = self._way(self.running, place) * (1 - 1e-9)
        enough = self._least[place] * price
        return ahead >= self._most[place] * price or (ahead >= enough and self.gains[place] >= enough)

    def quiet_s(self, concurrency: float) -> float | None:
        """Return seconds before which the rule fires for no mode while the concurrency stays; None: never."""
        row = self.book.row(concurrency)
        if row is None:
            return None
        waits = [wait for place, lead in enumerate(row.leads) if (wait := self._wait_s(row, place, lead)) is not None]
        return min(waits, default=None)

    def _wait_s(self, row: Row, place: int, lead: float) -> float | None:
        """Return seconds before which the rule does not go to that mode; None: never. The price falls at most to the pace now."""
        rate = row.regrets[self.running] - row.regrets[place]
        way = self.book.ways[self.running][place]
        if rate <= 0 or not way < math.inf:
            return None
        at = self.book.span_at[self.running][place]
        price = 0.0 if at is None else way * min(max(self.paces[at].fast, self.paces[at].slow), row.best)
        ahead, least, most = self.advantage(place), self._least[place] * price, self._most[place] * price
        wait = (most - ahead) / rate
        if lead > 0:
            wait = min(wait, max((least - ahead) / rate, (least - self.gains[place]) / lead))
        elif self.gains[place] >= least:
            wait = min(wait, (least - ahead) / rate)
        return max(wait, 0.0)

    def settled(self, state: State, *, since_look_s: float) -> State:
        """Return the state with these sums in it, and the time since the history was asked."""
        modes = self.book.modes
        return replace(
            state,
            mode=modes[self.running],
            work=dict(zip(modes, self.work, strict=True)),
            gains=dict(zip(modes, self.gains, strict=True)),
            paces={pace.seconds: (pace.fast, pace.slow) for pace in self.paces},
            watched_s=self.watched_s,
            excess=self.excess,
            since_look_s=since_look_s,
        )


def _nearest(state: State, seconds: float) -> tuple[float, float]:
    """Return the pace of the nearest price that is known: a host's load times change a little with each load."""
    if not state.paces:
        return (0.0, 0.0)
    return state.paces[min(state.paces, key=lambda known: abs(known - seconds))]
