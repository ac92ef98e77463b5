"""What the policy decides: when it goes, what it says of it, and how it goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control import policy
from specctl.control.limits import Limits
from specctl.control.mode import mode
from specctl.control.objective import Objective
from specctl.control.policy_costs import Flat, HostCosts
from specctl.control.policy_state import State
from specctl.control.policy_types import Hold, Means, Now, Pin, Price, SetKnobs, SwitchAlgo
from tests.unit.control.policy_worlds import (
    CHAIN,
    GOOD,
    LIMITS,
    LIVE,
    NARROW,
    RESTART,
    START,
    TABLE,
    WIDE,
    earned,
    later,
    run,
    settled,
)

HOST = HostCosts(live_knobs={"ddtree": frozenset({"tree_budget"})}, load_s={"dflash": 480.0, "ddtree": 480.0})
MIXED = replace(GOOD, costs=HOST, modes=(CHAIN, WIDE, NARROW))


def test_a_wrong_mode_is_left_once_its_regret_pays_for_the_way() -> None:
    """At 32 requests the wide tree serves a third of the chain: minutes later, not at once, the policy goes to the chain."""
    answer, _, now = earned()
    assert isinstance(answer, SwitchAlgo)
    assert (answer.mode, answer.price, answer.why.rule) == (CHAIN, RESTART, "gain")
    assert 240 <= now.mono_s - START.mono_s <= 600


def test_the_best_mode_stays() -> None:
    """Where the running mode is the best nothing is ever changed, and the reason says so."""
    view = replace(GOOD, mode=CHAIN)
    answer, state, _ = run(view, settled(view), START, 1800)
    assert isinstance(answer, Hold)
    assert answer.why.rule == "gain-too-small"
    assert answer.until_s is None
    assert state.work[CHAIN] == 0.0


def test_an_idle_server_wants_no_nought_of_tokens() -> None:
    """Where nothing was served of late a change costs nothing: any lead would do, which is said in words and not as a 0."""
    idle = replace(GOOD, mode=CHAIN, concurrency=0.0)
    answer, _, _ = run(idle, settled(idle), START, 10)
    assert isinstance(answer, Hold)
    assert answer.why.otherwise.endswith(" ahead at all")


def test_a_burst_does_not_move_a_restart() -> None:
    """A minute of load that another mode would serve better is not worth eight minutes of serving nothing."""
    state, now = settled(), START
    for _ in range(10):
        answer, state, now = run(GOOD, state, now, 30)
        assert isinstance(answer, Hold)
        answer, state, now = run(replace(GOOD, concurrency=2.0), state, now, 300)
        assert isinstance(answer, Hold)


def test_a_live_change_follows_the_load_in_seconds() -> None:
    """Where a change takes a tenth of a second the policy goes within three ticks, and comes back in ten."""
    view = replace(GOOD, costs=Flat(each=LIVE), modes=(NARROW, WIDE))
    answer, state, now = run(view, settled(view), START, 3)
    assert isinstance(answer, SetKnobs)
    assert answer.mode == NARROW
    state = policy.arrived(state, WIDE, answer, replace(LIMITS, trial_s=0.0), now, away_s=0.1)
    answer, _, _ = run(replace(view, mode=NARROW, concurrency=1.0), state, now, 10)
    assert isinstance(answer, SetKnobs)
    assert answer.mode == WIDE


def test_a_hold_names_the_mode_that_comes_nearest() -> None:
    """Of two other modes the one that has gathered most of what it needs is named, with what it lacks."""
    view = replace(MIXED, mode=NARROW, concurrency=64.0)
    answer, _, _ = run(view, settled(view), START, 60)
    assert isinstance(answer, Hold)
    assert answer.why.inputs["other"] == str(CHAIN)
    assert answer.why.reason.startswith(f"{CHAIN} would have served")


def test_a_hold_says_how_long_it_lasts_under_the_same_load() -> None:
    """Nothing is decided before `until_s` while the load stays, and something soon after a few times that."""
    _, state, now = run(GOOD, settled(), START, 2)
    answer = policy.decide(GOOD, state, LIMITS, now)
    assert isinstance(answer, Hold)
    assert answer.until_s is not None
    early, _, _ = run(GOOD, state, now, int(answer.until_s))
    assert isinstance(early, Hold)
    assert "further ahead" in answer.why.otherwise


def test_an_unknown_concurrency_is_calibrated_first() -> None:
    """Beyond the last point that was measured nothing is known, and nothing is tried."""
    view = replace(GOOD, rates=replace(TABLE, max_running=None), concurrency=100.0)
    answer, state, _ = run(view, settled(), START, 1200)
    assert isinstance(answer, Hold)
    assert (answer.why.rule, answer.until_s) == ("calibrate-first", None)
    assert set(state.work.values()) == {0.0}


def test_a_mode_that_was_never_measured_is_not_tried() -> None:
    """A mode without figures earns nothing, however bad the running one is."""
    view = replace(GOOD, modes=(WIDE, mode("none")))
    answer, _, _ = run(view, settled(), START, 1200)
    assert isinstance(answer, Hold)


def test_uncertain_figures_need_a_lead_beyond_their_doubt() -> None:
    """With figures that may be off by half, a lead of a fifth is none."""
    costs = Flat(each=Price(means=Means.RESTART, seconds=30.0))
    view = replace(GOOD, concurrency=8.0, modes=(WIDE, NARROW), costs=costs, rates=replace(TABLE, spread=0.5))
    assert isinstance(run(view, settled(), START, 1200)[0], Hold)
    sure = replace(view, rates=TABLE)
    assert isinstance(run(sure, settled(), START, 1200)[0], SwitchAlgo)


def test_a_gain_that_does_not_show_goes_back_once_and_freezes() -> None:
    """When the new mode serves no more than the old one would, the policy returns, and then stays whatever the model says."""
    answer, state, now = earned()
    assert isinstance(answer, SwitchAlgo)
    now = later(now, 480.0)
    state = policy.arrived(state, WIDE, answer, LIMITS, now, away_s=480.0)
    there = replace(GOOD, mode=CHAIN, tokens_s=510.0)
    back, state, now = run(there, state, now, 400)
    assert isinstance(back, SwitchAlgo)
    assert (back.mode, back.why.rule) == (WIDE, "no-gain")
    now = later(now, 480.0)
    state = policy.arrived(state, CHAIN, back, LIMITS, now, away_s=480.0)
    after, state, now = run(GOOD, state, now, 7200)
    assert isinstance(after, Hold)
    assert after.why.rule == "frozen"
    assert "510 tokens/s" in after.why.reason
    assert isinstance(run(GOOD, policy.resumed(state), now, 60)[0], SwitchAlgo)


def test_a_gain_that_shows_ends_the_trial() -> None:
    """When the new mode serves what was foreseen, it stays."""
    answer, state, now = earned()
    assert isinstance(answer, SwitchAlgo)
    state = policy.arrived(state, WIDE, answer, LIMITS, now, away_s=0.0)
    held, state, _ = run(replace(GOOD, mode=CHAIN, tokens_s=1100.0), state, now, 400)
    assert isinstance(held, Hold)
    assert (state.trial, state.frozen) == (None, None)


def test_a_gain_that_cannot_be_measured_freezes_without_an_act() -> None:
    """Without measured tokens nobody knows whether it was right: the mode stays, and so does everything else."""
    answer, state, now = earned()
    assert isinstance(answer, SwitchAlgo)
    state = policy.arrived(state, WIDE, answer, LIMITS, now, away_s=0.0)
    held, _, _ = run(replace(GOOD, mode=CHAIN), state, now, 1300)
    assert isinstance(held, Hold)
    assert held.why.rule == "frozen"


def test_a_failed_change_freezes() -> None:
    """A change that did not come through is not tried again by itself."""
    answer, state, now = earned()
    assert isinstance(answer, SwitchAlgo)
    state = policy.failed(state, answer, "the gate did not open", LIMITS, now)
    held, _, _ = run(GOOD, state, now, 10)
    assert isinstance(held, Hold)
    assert "the gate did not open" in held.why.reason


def test_a_freeze_thaws_by_itself() -> None:
    """After `freeze_s` the policy decides again."""
    limits = Limits(freeze_s=100.0)
    answer, state, now = earned()
    assert isinstance(answer, SwitchAlgo)
    state = policy.failed(state, answer, "x", limits, now)
    assert isinstance(run(GOOD, state, now, 110, limits)[0], SwitchAlgo)


def test_a_pin_wins_over_the_model_and_the_dwell_and_ends() -> None:
    """A pinned algo is gone to at once, kept against every gain, and left to the model when the pin has run out."""
    pinned = replace(GOOD, pin=Pin(mode=mode("dflash"), left_s=60.0, reason="a test", who="ann"))
    fresh = State(mode=WIDE, at=START)
    answer = policy.decide(pinned, fresh, LIMITS, START)
    assert isinstance(answer, SwitchAlgo)
    assert (answer.mode, answer.why.rule) == (CHAIN, "pinned")
    kept, _, _ = run(replace(pinned, mode=CHAIN, concurrency=1.0), State(mode=CHAIN, at=START), START, 3000)
    assert isinstance(kept, Hold)
    ended = replace(pinned, pin=Pin(mode=WIDE, left_s=0.0))
    assert isinstance(earned(ended)[0], SwitchAlgo)


def test_a_pin_that_cannot_be_reached_says_so() -> None:
    """A pin to a mode that is not there, or by refused means, holds with its reason."""
    away = replace(GOOD, pin=Pin(mode=mode("none"), left_s=60.0))
    answer = policy.decide(away, settled(), LIMITS, START)
    assert isinstance(answer, Hold)
    assert answer.why.rule == "pin-unreachable"
    refused = replace(GOOD, pin=Pin(mode=CHAIN, left_s=60.0), refused={Means.RESTART: "there is no gateway"})
    answer = policy.decide(refused, settled(), LIMITS, START)
    assert isinstance(answer, Hold)
    assert "there is no gateway" in answer.why.reason


def test_another_mode_begins_its_own_dwell() -> None:
    """When somebody else changes the mode, the policy takes that as a change like its own: it dwells anew."""
    state = policy.advance(settled(), replace(GOOD, mode=CHAIN), LIMITS, later(START, 1.0))
    assert (state.mode, state.dwell_s, state.trial) == (CHAIN, 0.0, None)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(Now(mono_s=500.0, wall_s=START.wall_s + 1, boot="one"), id="the monotonic clock went back"),
        pytest.param(Now(mono_s=1300.0, wall_s=START.wall_s + 300, boot="one"), id="nobody looked for five minutes"),
        pytest.param(Now(mono_s=5.0, wall_s=START.wall_s + 300, boot="two"), id="another boot"),
        pytest.param(Now(mono_s=5.0, wall_s=0.0, boot="two"), id="another boot and a wrong wall clock"),
    ],
)
def test_time_that_nobody_watched_earns_nothing(now: Now) -> None:
    """A gap, a jump and a reboot add no regret: nobody saw what load there was."""
    state = policy.advance(settled(), GOOD, LIMITS, now)
    assert (state.work, state.at) == ({}, now)


def test_a_wall_clock_that_jumps_changes_nothing() -> None:
    """Within a boot the monotonic clock alone counts: the same ticks under a mad wall clock end in the same sums."""
    calm = mad = settled()
    for tick in range(1, 100):
        now = later(START, float(tick))
        calm = policy.advance(calm, GOOD, LIMITS, now)
        mad = policy.advance(mad, GOOD, LIMITS, replace(now, wall_s=float(tick * 7919 % 1013) * 1e6))
    assert (calm.work, calm.dwell_s, calm.gains) == (mad.work, mad.dwell_s, mad.gains)


def test_the_mode_to_begin_with_is_the_best_for_the_load() -> None:
    """Few requests ask for the wide tree, many for the chain; no known load gives None."""
    objective = Objective()
    rates = GOOD.rates
    assert rates is not None
    assert policy.choose(rates, GOOD.modes, objective, {1.0: 60.0, 0.0: 1e6}) == WIDE
    assert policy.choose(rates, GOOD.modes, objective, {32.0: 60.0}) == CHAIN
    assert policy.choose(rates, GOOD.modes, objective, {0.0: 60.0}) is None


def test_knobs_follow_the_load_live_while_an_algo_waits() -> None:
    """Where the budget is live and the algo is not, a burst moves the budget in seconds, and no restart follows from it."""
    answer, state, now = run(MIXED, settled(), START, 10)
    assert isinstance(answer, SetKnobs)
    assert (answer.mode, answer.price.means) == (NARROW, Means.LIVE)
    state = policy.arrived(state, WIDE, answer, replace(LIMITS, trial_s=0.0), now, away_s=0.1)
    held, _, _ = run(replace(MIXED, mode=NARROW), state, now, 60)
    assert isinstance(held, Hold)


def test_an_algo_is_compared_with_the_best_that_knobs_can_do() -> None:
    """The chain beats the best budget by three tenths: a restart comes as late as if there were that budget alone."""
    view = replace(MIXED, mode=NARROW, concurrency=64.0)
    answer, _, now = run(view, settled(view), START, 7200)
    assert isinstance(answer, SwitchAlgo)
    assert (answer.mode, answer.price.means) == (CHAIN, Means.RESTART)
    alone = replace(view, modes=(CHAIN, NARROW), costs=Flat(each=RESTART))
    _, _, same = run(alone, settled(alone), START, 7200)
    assert now == same


def test_a_mode_without_a_way_is_not_gone_to() -> None:
    """An algo whose load time nobody knows has no price, and is left out however good it is."""
    view = replace(MIXED, costs=replace(HOST, load_s={}))
    answer, _, _ = run(replace(view, mode=NARROW), settled(replace(view, mode=NARROW)), START, 1200)
    assert isinstance(answer, Hold)
    assert answer.why.rule in {"gain-too-small", "no-other-mode"}
