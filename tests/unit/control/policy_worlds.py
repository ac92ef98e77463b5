"""A server for the policy's tests: two modes that cross at eight requests, and a view in which nothing forbids an act."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from specctl.control import policy
from specctl.control.limits import DAY_S, Limits
from specctl.control.mode import mode, parse
from specctl.control.objective import Metric, Objective
from specctl.control.policy_costs import Flat
from specctl.control.policy_state import LONG_AGO_S, Freeze, Spent, State, Trial
from specctl.control.policy_types import Decision, Hold, Means, Now, Price, View
from specctl.control.rates_table import Table

CHAIN, WIDE, NARROW, PLAIN = (
    mode("dflash"),
    parse("ddtree:tree_budget=64"),
    parse("ddtree:tree_budget=16"),
    mode("none"),
)
TABLE = Table(
    points={
        CHAIN: ((1.0, 70.0), (8.0, 500.0), (64.0, 2000.0)),
        WIDE: ((1.0, 110.0), (8.0, 500.0), (64.0, 520.0)),
        NARROW: ((1.0, 90.0), (8.0, 600.0), (64.0, 1400.0)),
    },
    max_running=64,
)
RESTART = Price(means=Means.RESTART, seconds=480.0)
LIVE = Price(means=Means.LIVE, seconds=0.1)
GOOD = View(
    mode=WIDE,
    concurrency=32.0,
    rates=TABLE,
    costs=Flat(each=RESTART),
    modes=(CHAIN, WIDE),
    objective=Objective(metric=Metric.THROUGHPUT),
)
START = Now(mono_s=1000.0, wall_s=1_700_000_000.0, boot="one")
LIMITS = Limits()


def later(now: Now, seconds: float) -> Now:
    """Return the instant so many seconds later, by both clocks."""
    return replace(now, mono_s=now.mono_s + seconds, wall_s=now.wall_s + seconds)


def settled(view: View = GOOD) -> State:
    """Return the state of a server that has run its mode for long, at START."""
    return replace(State.fresh(view.mode, dwell_s=LONG_AGO_S), at=START)


def run(view: View, state: State, now: Now, seconds: int, limits: Limits = LIMITS) -> tuple[Decision, State, Now]:
    """Tick once a second until an act or the time is over; returns the last decision, the state and the instant."""
    answer = policy.decide(view, state, limits, now)
    for _ in range(seconds):
        now = later(now, 1.0)
        state = policy.advance(state, view, limits, now)
        answer = policy.decide(view, state, limits, now)
        if not isinstance(answer, Hold):
            break
    return answer, state, now


def earned(view: View = GOOD, limits: Limits = LIMITS) -> tuple[Decision, State, Now]:
    """Return the moment at which a change is due."""
    return run(view, settled(view), START, 3600, limits)


MODES = st.sampled_from([CHAIN, WIDE, NARROW])
SUMS = st.dictionaries(MODES, st.floats(0.0, 1e7), max_size=3)
FAILED = Trial(old=CHAIN, seconds=400.0, measured_s=400.0, measured=0.0, expected_old=4e5, expected_new=5e5)
OPEN = Trial(old=NARROW, seconds=299.0, measured_s=299.5, measured=1e5, expected_old=3e5, expected_new=1e5)
STATES = st.builds(
    State,
    mode=st.one_of(st.just(WIDE), st.none(), MODES),
    at=st.just(START),
    clock_s=st.just(DAY_S),
    work=SUMS,
    gains=SUMS,
    watched_s=st.floats(0.0, 1e6),
    excess=st.floats(0.0, 1e6),
    since_look_s=st.sampled_from([0.0, 5.0]),
    dwell_s=st.one_of(st.just(1e9), st.floats(0.0, 3000.0)),
    spent=st.lists(
        st.builds(Spent, at_s=st.floats(0.0, DAY_S), count=st.integers(1, 20), away_s=st.floats(0.0, 5000.0)),
        max_size=2,
    ).map(tuple),
    trial=st.sampled_from([None, None, None, FAILED, OPEN]),
    frozen=st.one_of(
        st.none(), st.none(), st.none(), st.builds(Freeze, reason=st.just("x"), left_s=st.floats(1.0, 100.0))
    ),
)
