"""The guard's decisions, by themselves: what is confirmed is never taken back, no deadline is passed, every story has one end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.host.guard_rules import (
    GUARD,
    NOBODY,
    OPERATOR,
    OTHER,
    RESTORED,
    STARTS,
    TRIES,
    UNTOUCHED,
    Decision,
    Finish,
    Look,
    Over,
    Restore,
    Stop,
    Wait,
    decide,
    noted,
)
from specctl.host.guard_state import (
    CONFIRMED,
    ENDED,
    GATING,
    OVER,
    RESTORING,
    STOPPING,
    WATCHING,
    Goal,
    GuardState,
)

BACK = Goal("6", "dflash")
OLD, NEW, NEWER = "old", "new", "newer"
STATE = GuardState(
    phase=WATCHING,
    act="deploy",
    who="ann@desk",
    server="k26",
    host="gpu1",
    aim=Goal("7", "ddtree"),
    back=BACK,
    token=3,
    boot="boot",
    seen_s=100.0,
    hard_left_s=1200.0,
    hard_s=1200.0,
    confirm_s=120.0,
    load_s=600.0,
    stop_s=60.0,
    before=OLD,
)
LOADING = Look(
    boot="boot", now_s=103.0, holder=NOBODY, active="active", sub="running", invocation=NEW, restarts=0, ready=False
)
UNTOUCHED_LOOK = replace(LOADING, invocation=OLD, runs_back=True, ready=True)


def after(state: GuardState, look: Look) -> Decision:
    """Return what is decided after a look."""
    return decide(noted(state, look), look)


def test_while_the_operator_is_there_it_only_watches() -> None:
    """A living lease keeps the guard from everything but the hard deadline, even when the server is down."""
    assert after(STATE, replace(LOADING, holder=OPERATOR, active="failed")) == Wait("the operator is at work")
    late = after(replace(STATE, hard_left_s=2.0), replace(LOADING, holder=OPERATOR, ready=True))
    assert late == Restore("nobody confirmed it within 1200 s")


def test_a_loading_server_is_waited_for_when_the_operator_is_gone() -> None:
    """A load goes on, and a deadline that is not over is not used."""
    assert after(STATE, LOADING) == Wait("ann@desk was gone; the new server is loading")


def test_a_ready_server_has_until_the_confirm_deadline() -> None:
    """From when it was found ready the confirm deadline counts, and then it is taken back."""
    state = noted(STATE, replace(LOADING, ready=True))
    assert state.confirm_left_s == 120.0
    just = noted(state, replace(LOADING, now_s=222.0))
    over = noted(state, replace(LOADING, now_s=223.5))
    assert isinstance(decide(just, LOADING), Wait)
    assert decide(over, LOADING) == Restore("ann@desk was gone; it was ready, but nobody confirmed it within 120 s")


def test_an_operator_that_comes_back_has_all_its_time_again() -> None:
    """A connection that was found again ends the confirm deadline; lost once more, it begins anew."""
    gone = noted(STATE, replace(LOADING, ready=True))
    there = noted(gone, replace(LOADING, now_s=200.0, holder=OPERATOR))
    again = noted(there, replace(LOADING, now_s=203.0, ready=True))
    assert (gone.confirm_left_s, there.confirm_left_s, again.confirm_left_s) == (120.0, None, 120.0)


@pytest.mark.parametrize(
    ("look", "why"),
    [
        (replace(LOADING, active="failed", sub="failed"), "ann@desk was gone and the server was not running (failed)"),
        (replace(LOADING, active="inactive"), "ann@desk was gone and the server was not running (inactive)"),
        (
            replace(LOADING, active="activating", sub="auto-restart"),
            "ann@desk was gone and the server was not running (activating)",
        ),
        (replace(LOADING, restarts=1), "ann@desk was gone and the new server died"),
        (replace(LOADING, invocation=NEWER), "ann@desk was gone and the new server died"),
        (replace(LOADING, invocation=OLD), "ann@desk was gone before the new server was started"),
        (replace(LOADING, boot="next"), "the host was restarted and ann@desk was gone"),
    ],
)
def test_it_acts_at_once_when_waiting_helps_nothing(look: Look, why: str) -> None:
    """A server that is down, died, was restarted or never started, and a host that was, are not waited for."""
    assert after(noted(STATE, LOADING), look) == Restore(why)


def test_a_first_deploy_is_stopped() -> None:
    """Without anything to go back to, taking back is stopping."""
    assert isinstance(after(replace(STATE, back=None, before=None), replace(LOADING, active="failed")), Stop)


def test_what_was_never_changed_is_left_alone() -> None:
    """The old process under the old release: nothing to do but to say so; after a reboot it is gated."""
    found = after(STATE, UNTOUCHED_LOOK)
    assert isinstance(found, Finish)
    assert found.end == UNTOUCHED
    assert isinstance(after(STATE, replace(UNTOUCHED_LOOK, boot="next", invocation=NEW)), Restore)


def test_an_unknown_state_is_waited_for_until_the_hard_deadline() -> None:
    """When the service manager does not answer, nothing is concluded from that."""
    silent = replace(LOADING, active=None, invocation=None, restarts=None)
    assert isinstance(after(noted(STATE, LOADING), silent), Wait)
    assert isinstance(after(replace(STATE, hard_left_s=0.0), silent), Restore)


def test_a_reboot_costs_no_time() -> None:
    """What was left before a reboot is left after it, however the clock of the new boot stands."""
    state = noted(replace(STATE, hard_left_s=50.0), replace(LOADING, boot="next", now_s=1_000_000.0))
    assert (state.hard_left_s, state.boot, state.rebooted) == (50.0, "next", True)


def test_a_restored_server_is_gated() -> None:
    """Ready is the end; a death, another start or the load's limit is not waited for any longer."""
    gating = replace(STATE, phase=GATING, reason="why", load_left_s=600.0, pinned=NEWER, restarts=0, own=4)
    look = replace(LOADING, holder=GUARD, invocation=NEWER)
    assert after(gating, look) == Wait("release 6, dflash is loading")
    assert after(gating, replace(look, ready=True)) == Finish(RESTORED, "why")
    for bad in (replace(look, active="failed"), replace(look, restarts=1), replace(look, invocation=NEW)):
        assert after(gating, bad) == Stop("why; release 6, dflash died while it was loading")
    assert after(gating, replace(look, now_s=800.0)) == Stop("why; release 6, dflash was not ready within 600 s")
    assert after(gating, replace(look, boot="next")) == Restore("why")
    assert isinstance(after(replace(gating, starts=STARTS), replace(look, boot="next")), Stop)


def test_what_cannot_be_put_back_is_stopped() -> None:
    """A step that fails is tried a few times, not for ever."""
    state = replace(STATE, phase=RESTORING, reason="why", own=4)
    look = replace(LOADING, holder=GUARD)
    assert after(state, look) == Restore("why")
    assert isinstance(after(replace(state, tries=TRIES), look), Stop)


# What follows plays whole stories: a host that does as it likes, an operator that comes and goes, ticks that are killed.

HOLDERS = st.sampled_from([OPERATOR, NOBODY, NOBODY, GUARD, OTHER])
PHASES = st.sampled_from([WATCHING, RESTORING, GATING, STOPPING, CONFIRMED, ENDED])
LOOKS = st.builds(
    Look,
    boot=st.sampled_from(["boot", "boot", "boot", "next"]),
    now_s=st.floats(0, 5000),
    holder=HOLDERS,
    active=st.sampled_from(["active", "active", "activating", "deactivating", "inactive", "failed", None]),
    sub=st.sampled_from(["running", "auto-restart", "dead", None]),
    invocation=st.sampled_from([OLD, NEW, NEWER, None]),
    restarts=st.sampled_from([0, 1, None]),
    ready=st.booleans(),
    runs_back=st.booleans(),
)
LEFT = st.floats(-10, 3000)
STATES = st.builds(
    replace,
    st.just(STATE),
    phase=PHASES,
    back=st.sampled_from([BACK, BACK, None]),
    before=st.sampled_from([OLD, None]),
    pinned=st.sampled_from([NEW, NEWER, None]),
    restarts=st.sampled_from([0, 1, None]),
    hard_left_s=LEFT,
    confirm_left_s=st.none() | LEFT,
    load_left_s=st.none() | LEFT,
    rebooted=st.booleans(),
    tries=st.integers(0, 4),
    starts=st.integers(0, 4),
    reason=st.sampled_from(["why", None]),
    own=st.sampled_from([4, None]),
)


@given(STATES, LOOKS)
def test_a_confirmed_deploy_is_never_taken_back(state: GuardState, look: Look) -> None:
    """Whatever the host looks like, once it is confirmed or ended the guard removes itself or waits, and changes nothing else."""
    state = replace(state, phase=CONFIRMED if look.now_s < 2500 else ENDED)
    assert noted(state, look) == state
    assert isinstance(after(state, look), (Over, Wait))


@given(STATES, LOOKS)
def test_the_hard_deadline_is_never_waited_past(state: GuardState, look: Look) -> None:
    """After the hard deadline a guard that watches acts, unless somebody else has taken the server over."""
    state = noted(replace(state, phase=WATCHING, hard_left_s=-1.0), look)
    assert isinstance(decide(state, look), Wait) == (look.holder == OTHER)


@given(STATES, LOOKS)
def test_nothing_is_restored_that_is_not_there(state: GuardState, look: Look) -> None:
    """Without a release to go back to the guard never restores; with a live lease of others it never acts."""
    found = after(state, look)
    assert not (isinstance(found, Restore) and state.back is None)
    assert look.holder != OTHER or isinstance(found, Wait)


@given(STATES, LOOKS)
def test_what_serves_is_only_called_back_when_it_does(state: GuardState, look: Look) -> None:
    """The end "restored" needs a ready server in the start that was gated; "untouched" the very process from before."""
    found = after(state, look)
    if isinstance(found, Finish):
        if found.end == RESTORED:
            assert look.ready
            assert not look.down
            assert (look.invocation, look.restarts) == (state.pinned, state.restarts)
        else:
            assert look.runs_back
            assert look.invocation == state.before
            assert look.invocation is not None


@dataclass(slots=True)
class Story:
    """A host on which a guard's decisions take effect, as guard_tick.py makes them; steps may fail, and ticks may be lost."""

    state: GuardState
    ends: list[str]

    def tick(self, look: Look, *, fails: bool, killed: bool) -> None:
        """Do one tick; a killed one leaves what was written before its effect."""
        seen = noted(self.state, look)
        decision = decide(seen, look)
        match decision:
            case Wait():
                self.state = seen
            case Restore(reason=reason):
                self._enter(seen, RESTORING, reason)
                if not killed:
                    self._put_back(look, fails=fails)
            case Stop(reason=reason):
                self._enter(seen, STOPPING, reason)
                if not killed and not (fails and self.state.tries + 1 < TRIES):
                    self._end("stopped")
                elif not killed:
                    self.state = replace(self.state, tries=self.state.tries + 1)
            case Finish(end=end):
                if not killed:
                    self._end(end)
            case Over():
                pass

    def _enter(self, seen: GuardState, phase: str, reason: str) -> None:
        same = seen.phase == phase
        self.state = replace(seen, phase=phase, reason=reason, own=9, tries=seen.tries if same else 0)

    def _put_back(self, look: Look, *, fails: bool) -> None:
        if fails:
            self.state = replace(self.state, tries=self.state.tries + 1)
            return
        self.state = replace(
            self.state,
            phase=GATING,
            tries=0,
            load_left_s=self.state.load_s,
            rebooted=False,
            pinned=look.invocation,
            restarts=look.restarts,
            starts=self.state.starts + 1,
        )

    def _end(self, end: str) -> None:
        self.state = replace(self.state, phase=ENDED)
        self.ends.append(end)


@given(st.lists(st.tuples(LOOKS, st.booleans(), st.booleans()), max_size=40), st.sampled_from([BACK, None]))
def test_every_story_has_exactly_one_end(moments: list[tuple[Look, bool, bool]], back: Goal | None) -> None:
    """Whatever happens, once the guard is left to work it ends within bounded time in one of restored, untouched, stopped."""
    story = Story(replace(STATE, back=back), [])
    boot, now_s = "boot", 100.0
    for look, fails, killed in moments:
        boot = f"{boot}+" if look.boot == "next" else boot
        now_s += 3.0
        story.tick(replace(look, boot=boot, now_s=now_s), fails=fails, killed=killed)
    limit_s = STATE.hard_s + STATE.load_s + 300.0
    quiet = Look(boot=boot, now_s=now_s, holder=GUARD, active="active", sub="running", invocation=NEWER, restarts=0)
    while story.state.phase not in OVER and limit_s > 0:
        limit_s -= 30.0
        now_s += 30.0
        story.tick(replace(quiet, now_s=now_s), fails=False, killed=False)
    assert story.state.phase == ENDED
    assert len(story.ends) == 1
    assert story.ends[0] in ((RESTORED, UNTOUCHED, "stopped") if back is not None else ("stopped",))
