"""What the policy never does, over many generated servers: whatever else holds, an act means that nothing forbade it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specctl.control import policy, policy_guard
from specctl.control.limits import DAY_S
from specctl.control.policy_costs import Flat
from specctl.control.policy_state import Spent, State, Trial
from specctl.control.policy_types import Decision, Hold, Means, Pin, Price, View
from tests.examples import examples
from tests.unit.control.policy_worlds import (
    CHAIN,
    GOOD,
    LIMITS,
    MODES,
    NARROW,
    PLAIN,
    START,
    STATES,
    TABLE,
    WIDE,
    earned,
    later,
)


def texts() -> st.SearchStrategy[tuple[str, ...]]:
    """Mostly nothing, sometimes a complaint: were all inputs random, an act would be too rare to say anything of."""
    return st.sampled_from([(), (), (), (), ("a complaint",)])


PRICES = st.builds(
    Price, means=st.sampled_from(Means), seconds=st.sampled_from([0.1, 5.0, 480.0]), weight=st.floats(0.0, 2.0)
)
PIN = st.builds(Pin, mode=st.sampled_from([CHAIN, WIDE, NARROW, PLAIN]), left_s=st.floats(-10, 100))
PINS = st.one_of(st.none(), st.none(), PIN)
VIEWS = st.builds(
    View,
    mode=st.one_of(st.just(WIDE), st.just(WIDE), st.none(), MODES),
    concurrency=st.one_of(st.just(32.0), st.just(0.0), st.none(), st.floats(0.0, 200.0)),
    rates=st.sampled_from([TABLE, TABLE, None]),
    costs=st.builds(Flat, each=PRICES),
    modes=st.sampled_from([(CHAIN, WIDE), (CHAIN, WIDE, NARROW), (WIDE,), (CHAIN, PLAIN, WIDE)]),
    age_s=st.one_of(st.just(0.5), st.just(0.5), st.none(), st.floats(0.0, 60.0)),
    tokens_s=st.one_of(st.none(), st.floats(0.0, 3000.0)),
    findings=texts(),
    gpu_troubles=texts(),
    lease_known=st.sampled_from([True, True, True, False]),
    lease_holder=st.sampled_from([None, None, None, "ann"]),
    adapts_itself=st.sampled_from([False, False, False, None, True]),
    refused=st.sampled_from([{}, {}, {Means.RESTART: "no gateway"}, {Means.LIVE: "no such call"}]),
    pin=PINS,
    hold=st.sampled_from([None, None, None, None, "hands off"]),
)


def _with_some(view: View, names: frozenset[str]) -> View:
    return replace(GOOD, **{name: getattr(view, name) for name in names})


def _with_pin(view: View, pin: Pin) -> View:
    return replace(view, pin=pin)


DRAWN = tuple(each.name for each in fields(View) if each.name not in {"objective", "history"})
# A view in which nothing forbids an act, but for a few things: of views that are random in all things one in 150 lets an act be.
NEARLY_GOOD = st.builds(_with_some, VIEWS, st.frozensets(st.sampled_from(DRAWN), max_size=4))
SECONDS = st.sampled_from([0.0, 1.0, 1.0, 400.0, -5.0])


NOWHERE = State(
    mode=CHAIN,
    at=START,
    dwell_s=1e9,
    trial=Trial(old=CHAIN, seconds=400.0, measured_s=400.0, measured=0.0, expected_old=4e5, expected_new=5e5),
)


@settings(max_examples=150, deadline=None)
@given(view=VIEWS, state=STATES, seconds=SECONDS)
@example(view=replace(GOOD, mode=CHAIN), state=NOWHERE, seconds=0.0)
def test_an_act_means_that_nothing_forbade_it(view: View, state: State, seconds: float) -> None:
    """Every act satisfies every condition, checked here one by one and not by the policy's own guard."""
    check(view, state, seconds)


@pytest.mark.slow
def test_an_act_means_that_nothing_forbade_it_ever() -> None:
    """The same of servers that little or nothing forbids an act, and all kinds of acts are seen: of no act anything holds."""
    found: set[str] = set()

    @settings(max_examples=examples(1500), deadline=None)
    @given(view=st.one_of(NEARLY_GOOD, st.builds(_with_pin, NEARLY_GOOD, PIN)), state=STATES, seconds=SECONDS)
    def each(view: View, state: State, seconds: float) -> None:
        answer = check(view, state, seconds)
        if not isinstance(answer, Hold):
            found.add(answer.why.rule)

    each()
    assert found == {"gain", "no-gain", "pinned"}


def check(view: View, state: State, seconds: float) -> Decision:
    """Let the policy decide after so many seconds, hold an act against every condition, and return it."""
    now = later(START, seconds)
    state = policy.advance(state, view, LIMITS, now)
    answer = policy.decide(view, state, LIMITS, now)
    assert answer.why.rule
    assert answer.why.reason
    if isinstance(answer, Hold):
        return answer
    assert view.hold is None
    assert view.mode is not None
    assert answer.mode in view.modes
    assert answer.mode != view.mode
    assert view.concurrency is not None
    assert view.age_s is not None
    assert view.age_s <= LIMITS.stale_s
    assert (view.findings, view.gpu_troubles) == ((), ())
    assert view.lease_known
    assert view.lease_holder is None
    assert view.adapts_itself is False
    assert answer.price.means not in view.refused
    assert answer.why.otherwise
    if answer.why.rule == "pinned":
        assert view.pin is not None
        assert view.pin.left_s > 0
        assert view.pin.holds(answer.mode)
        return answer
    assert view.pin is None or view.pin.left_s <= 0
    assert view.rates is not None
    if answer.why.rule == "no-gain":
        assert state.trial is not None
        assert answer.mode == state.trial.old
        return answer
    assert state.frozen is None
    assert state.dwell_s >= LIMITS.dwell_prices * answer.price.seconds
    lately = [one for one in state.spent if state.clock_s - one.at_s <= DAY_S]
    assert sum(one.count for one in lately) < LIMITS.switches_a_day
    assert sum(one.away_s for one in lately) + answer.price.seconds <= LIMITS.away_a_day_s
    assert view.concurrency == 0 or view.rates.tokens_s(answer.mode, view.concurrency) is not None
    return answer


FORBIDDEN = {
    "held": replace(GOOD, hold="hands off"),
    "input-missing": replace(GOOD, concurrency=None),
    "input-stale": replace(GOOD, age_s=60.0),
    "input-contradicts": replace(GOOD, findings=("depth 5 and commit 2",)),
    "lease-held": replace(GOOD, lease_holder="ann"),
    "gpu-trouble": replace(GOOD, gpu_troubles=("GPU-1 throttles: thermal",)),
    "engine-adapts": replace(GOOD, adapts_itself=True),
    "calibrate-first": replace(GOOD, rates=None),
}


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_what_forbids_an_act_is_said_by_its_rule(rule: str) -> None:
    """A change that is due is held by each single thing that forbids it, under that thing's own name."""
    due, state, now = earned()
    assert not isinstance(due, Hold)
    answer = policy.decide(FORBIDDEN[rule], state, LIMITS, now)
    assert isinstance(answer, Hold)
    assert answer.why.rule == rule
    assert answer.why.otherwise


@pytest.mark.parametrize(
    "view",
    [
        replace(GOOD, mode=None),
        replace(GOOD, mode=PLAIN),
        replace(GOOD, age_s=None),
        replace(GOOD, lease_known=False),
        replace(GOOD, adapts_itself=None),
    ],
)
def test_what_is_not_known_forbids_an_act(view: View) -> None:
    """Unknown is never taken for good."""
    _, state, now = earned()
    assert _rule(policy.decide(view, state, LIMITS, now)) == "input-missing"


def _rule(answer: Decision) -> str:
    return answer.why.rule if isinstance(answer, Hold) else ""


def test_a_mode_stays_for_its_least_time() -> None:
    """Within the dwell a change that is due waits, and says for how long."""
    _, state, now = earned()
    answer = policy.decide(GOOD, replace(state, dwell_s=100.0), LIMITS, now)
    assert isinstance(answer, Hold)
    assert (answer.why.rule, answer.until_s) == ("dwell", 860.0)


def test_the_days_changes_are_bounded() -> None:
    """Once changes took an hour of the last day, or were too many, no other follows until the old ones are a day old."""
    _, state, now = earned()
    many = replace(state, clock_s=DAY_S, spent=(Spent(at_s=DAY_S - 100.0, count=7, away_s=3300.0),))
    assert _rule(policy.decide(GOOD, many, LIMITS, now)) == "switches-a-day"
    count = replace(many, spent=(Spent(at_s=DAY_S, count=LIMITS.switches_a_day, away_s=0.0),))
    assert _rule(policy.decide(GOOD, count, LIMITS, now)) == "switches-a-day"
    old = replace(many, spent=(Spent(at_s=-10.0, count=7, away_s=3300.0),))
    assert not isinstance(policy.decide(GOOD, old, LIMITS, now), Hold)


@pytest.mark.parametrize("means", list(Means))
def test_refused_means_are_not_used(means: Means) -> None:
    """A server that may not restart is not restarted, nor set live where that is refused."""
    due, state, now = earned(replace(GOOD, costs=Flat(each=Price(means=means, seconds=100.0))))
    assert not isinstance(due, Hold)
    view = replace(GOOD, costs=Flat(each=Price(means=means, seconds=100.0)), refused={means: "there is no gateway"})
    answer = policy.decide(view, state, LIMITS, now)
    assert isinstance(answer, Hold)
    assert (answer.why.rule, "there is no gateway" in answer.why.reason) == ("means-refused", True)


def test_every_guard_lets_a_good_view_pass() -> None:
    """Nothing forbids an act where all is well."""
    assert policy_guard.forbidden(GOOD, LIMITS) is None
