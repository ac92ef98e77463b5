"""The competitive bound of the rule, held against the exact schedule by dynamic programming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control.limits import Limits
from specctl.control.mode import Mode, mode, parse
from specctl.control.objective import Metric, Objective
from specctl.control.policy_book import Book
from specctl.control.policy_costs import Flat
from specctl.control.policy_ledger import Ledger
from specctl.control.policy_state import State
from specctl.control.policy_types import Means, Price
from specctl.control.rates import Estimate, Source

MODES = (mode("none"), mode("dflash"), parse("ddtree:tree_budget=16"), parse("ddtree:tree_budget=64"))
BEST = 100.0
EXACT = Limits(tolerance_ratio=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A model in which each whole concurrency is one task: tokens a second of each mode; one mode is always worth BEST."""

    tasks: Sequence[Sequence[float]]
    modes: Sequence[Mode] = field(default=MODES)

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the scripted rate."""
        row = self.tasks[int(concurrency) - 1]
        rate = row[MODES.index(mode)] / max(row) * BEST
        return Estimate(value=rate, low=rate, high=rate, source=Source.CALIBRATED)


@dataclass(slots=True)
class Player:
    """The rule at play: it sees each task before the task is served, as the policy sees the load of the second that begins."""

    model: Scripted
    seconds: float
    running: int
    limits: Limits
    state: State = field(default_factory=State)
    regret: float = 0.0
    changes: int = 0
    visited: set[int] = field(default_factory=set)

    def serve(self, task: int) -> None:
        """Let the rule choose where to serve a task, and count what that costs."""
        self.visited.add(self.running)
        ledger = Ledger(self._book(), self.state, self.limits)
        ledger.advance(1.0, float(task))
        place = ledger.wants(float(task))
        self.state = ledger.settled(self.state, since_look_s=0.0)
        if place is not None:
            self.changes += 1
            self.running = place
            self.visited.add(place)
            self.state = replace(self.state, gains={})
        self.regret += BEST - _rate(self.model, task, self.running)

    def _book(self) -> Book:
        costs = Flat(each=Price(means=Means.RESTART, seconds=self.seconds))
        objective = Objective(metric=Metric.THROUGHPUT)
        return Book(self.model, objective, MODES, costs, MODES[self.running], self.limits)

    def keeps_to_the_bound(self, tasks: Sequence[int], start: int) -> bool:
        """Claim that what was paid for these tasks is at most V (1 + 1/least) (OPT + most d)."""
        price = self.seconds * BEST
        least, most = self.limits.enough(self.seconds)
        optimum = cheapest(self.model, tasks, price * most, start)
        bound = len(self.visited) * (1 + 1 / least) * (optimum + most * price)
        return self.regret + self.changes * price <= bound * (1 + 1e-9)


def _rate(model: Scripted, task: int, place: int) -> float:
    found = model.tokens_s(MODES[place], float(task))
    return 0.0 if found is None else found.value


def cheapest(model: Scripted, tasks: Sequence[int], price: float, start: int) -> float:
    """Return the least regret and prices that any schedule pays, by dynamic programming over every schedule."""
    paid = [0.0 if place == start else price for place in range(len(MODES))]
    for task in tasks:
        least = min(paid)
        paid = [min(one, least + price) + BEST - _rate(model, task, place) for place, one in enumerate(paid)]
    return min(paid)


RATES = st.lists(st.floats(1.0, 100.0), min_size=len(MODES), max_size=len(MODES))


@settings(max_examples=100, deadline=None)
@given(
    tasks=st.lists(RATES, min_size=1, max_size=6),
    order=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 12)), min_size=1, max_size=60),
    seconds=st.floats(1.5, 90.0),
    start=st.integers(0, len(MODES) - 1),
    least=st.floats(0.2, 2.0),
)
def test_any_load_costs_no_more_than_the_bound(
    tasks: list[list[float]], order: list[tuple[int, int]], seconds: float, start: int, least: float
) -> None:
    """Over random tasks in random order the rule pays at most the documented bound."""
    limits = Limits(tolerance_ratio=0.0, least=least, least_short=least)
    served = [place % len(tasks) + 1 for place, times in order for _ in range(times)]
    player = Player(model=Scripted(tasks=tasks), seconds=seconds, running=start, limits=limits)
    for task in served:
        player.serve(task)
    assert player.keeps_to_the_bound(served, start)


@settings(max_examples=15, deadline=None)
@given(seconds=st.floats(1.5, 90.0), start=st.integers(0, len(MODES) - 1), low=st.floats(1.0, 95.0))
def test_an_adversary_costs_no_more_than_the_bound(seconds: float, start: int, low: float) -> None:
    """An adversary that always makes the running mode the worst, as nobody could in advance, stays within the bound."""
    tasks = [[low if place == bad else 100.0 for place in range(len(MODES))] for bad in range(len(MODES))]
    player = Player(model=Scripted(tasks=tasks), seconds=seconds, running=start, limits=EXACT)
    served: list[int] = []
    for _ in range(300):
        served.append(player.running + 1)
        player.serve(served[-1])
    assert player.keeps_to_the_bound(served, start)


@pytest.mark.parametrize("own", [20.0, 50.0, 75.0])
def test_the_worst_mode_is_left_within_the_documented_time(own: float) -> None:
    """Under a steady load a mode is left once what its lead lacks beyond a large gain adds up to `least` prices, and not before."""
    limits = Limits()
    due_s = limits.least * 480.0 / (1 - own / BEST - limits.large_ratio)
    player = Player(model=Scripted(tasks=[[own, 100.0, 10.0, 10.0]]), seconds=480.0, running=0, limits=limits)
    served_s = 0
    while player.changes == 0 and served_s < 2 * due_s:
        player.serve(1)
        served_s += 1
    assert due_s - 1 <= served_s <= due_s + 1
    assert player.running == 1
