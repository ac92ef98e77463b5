"""One server's decisions: what the policy is shown, what shuts a way for a while, and what is written down of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from specctl.control.mode import Mode
from specctl.control.policy_costs import HostCosts
from specctl.control.policy_types import Act, Hold, Now, SwitchAlgo
from specctl.control.rates import Estimate, Source
from specctl.control.sample.engine import Activity, EngineInfo, EngineSample
from specctl.fleet.types import AgentMode
from specctl_agent.eyes import open_eyes
from specctl_agent.mind import Beside, Mind, text_of, view_of
from specctl_agent.orders import Pinned, Standing, Until
from specctl_agent.places import Places
from specctl_agent.watch import Watch
from specctl_agent.ways import Ways
from tests.agentworld import ACT, DDTREE, DFLASH, NONE
from tests.unit.agent.hostworld import lay_out

SETTINGS = replace(ACT, min_dwell_s=0.0)
LIVE = HostCosts(live_algos=True)


class Better:
    """A model by which the chain is twice as good as the tree, wherever one asks."""

    modes = (DDTREE, DFLASH)

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the rate."""
        rate = {DDTREE: 50.0, DFLASH: 100.0}.get(mode)
        return None if rate is None else Estimate(value=rate, low=rate, high=rate, source=Source.CALIBRATED)


@dataclass(slots=True)
class World:
    """A mind, what it is shown, and time that a test lets pass."""

    watch: Watch
    mind: Mind = field(default_factory=lambda: Mind(SETTINGS))
    standing: Standing = field(default_factory=Standing)
    beside: Beside = field(
        default_factory=lambda: Beside(ways=Ways(modes=(DDTREE, DFLASH), costs=LIVE), rates=Better())
    )
    now: Now = field(default_factory=lambda: Now(mono_s=1000.0, wall_s=1_795_994_000.0, boot="b"))

    def turn(self, seconds: float = 1.0) -> bool:
        """Let time pass and decide."""
        self.now = replace(self.now, mono_s=self.now.mono_s + seconds, wall_s=self.now.wall_s + seconds)
        return self.mind.think(self.watch, self.beside, self.standing, self.now)

    def until(self, claim: Callable[[], bool], turns: int = 2000) -> None:
        """Decide every second until a claim holds."""
        for _ in range(turns):
            if claim():
                return
            self.turn()
        raise AssertionError(f"it did not come to pass: {self.mind.decision}")

    @property
    def act(self) -> Act:
        """Return the act that is decided."""
        decision = self.mind.decision
        assert isinstance(decision, SwitchAlgo)
        return decision


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A server that runs a tree under four requests, all well."""
    lay_out(tmp_path, 1, ACT)
    place = Places(tmp_path).find("lab")
    assert place is not None
    watch = Watch(place=place, eyes=open_eyes(place), mode=DDTREE, info=EngineInfo(), look_age_s=0.5)
    watch.sample = EngineSample(at_s=1.0, span_s=1.0, activity=Activity.ACTIVE, running=4, waiting=0, mode=DDTREE)
    return World(watch)


def rule(world: World) -> str:
    """Return the rule that decided."""
    assert world.mind.decision is not None
    return world.mind.decision.why.rule


def test_a_gain_is_decided_told_once_and_written_down(world: World) -> None:
    """The decision stands while nothing changes; its entry has all that it was taken from, as JSON."""
    world.until(lambda: isinstance(world.mind.decision, SwitchAlgo))
    assert (text_of(world.act), rule(world), world.turn()) == (f"switch {DFLASH}", "gain", False)
    entry = world.mind.entry("lab", AgentMode.ADVISE)
    assert json.loads(json.dumps(entry)) == entry
    assert (entry["server"], entry["decision"], entry["conduct"], entry["rule"]) == (
        "lab",
        f"switch {DFLASH}",
        "advise",
        "gain",
    )
    inputs = entry["inputs"]
    assert isinstance(inputs, dict)
    assert (inputs["running"], inputs["concurrency"], inputs["other"]) == (str(DDTREE), 4.0, str(DFLASH))
    assert entry["otherwise"]
    assert world.mind.gain_ratio == pytest.approx(1.0)


def test_the_least_dwell_shuts_every_way_but_a_pins(world: World) -> None:
    """Sooner than the inventory's min_dwell nothing is switched, unless a person has pinned."""
    world.mind.settings = replace(SETTINGS, min_dwell_s=500.0)
    world.until(lambda: rule(world) == "means-refused" if world.mind.decision else False)
    assert isinstance(world.mind.decision, Hold)
    assert "min_dwell (500 s)" in world.mind.decision.why.reason
    world.standing = Standing(pin=Pinned(mode=DFLASH, reason="a demo", who="ops", until=Until.after(60.0, world.now)))
    world.turn()
    assert (rule(world), text_of(world.act)) == ("pinned", f"switch {DFLASH}")
    world.standing = Standing()
    world.turn()
    world.until(lambda: isinstance(world.mind.decision, SwitchAlgo))
    assert world.mind.state.dwell_s >= 500.0


def test_a_way_that_was_turned_away_is_tried_again_later(world: World) -> None:
    """What was refused before anything was changed freezes nothing: the same way is open again after ten minutes."""
    world.until(lambda: isinstance(world.mind.decision, SwitchAlgo))
    world.mind.refused(world.act.price.means, "no other worker is healthy", world.now)
    world.turn()
    assert (rule(world), world.mind.state.frozen) == ("means-refused", None)
    assert isinstance(world.mind.decision, Hold)
    assert "no other worker is healthy" in world.mind.decision.why.reason
    world.until(lambda: isinstance(world.mind.decision, SwitchAlgo), turns=700)


def test_a_failure_freezes_until_a_person_resumes(world: World) -> None:
    """A change that was tried and did not come through ends all others, until somebody lets the agent go on."""
    world.until(lambda: isinstance(world.mind.decision, SwitchAlgo))
    world.mind.failed(world.act, "it does not come up", world.now)
    world.turn()
    assert rule(world) == "frozen"
    world.standing = replace(world.standing, resumed=1)
    world.turn()
    assert (rule(world) == "frozen", world.mind.state.frozen) == (False, None)


def test_resumes_of_before_a_restart_end_no_freeze(world: World) -> None:
    """A count of resumes that is found at the start is no new one."""
    world.standing = Standing(resumed=7)
    world.until(lambda: isinstance(world.mind.decision, SwitchAlgo))
    world.mind.failed(world.act, "it does not come up", world.now)
    again = Mind(SETTINGS)
    assert again.take_up(json.loads(json.dumps(world.mind.plain()))) is None
    world.mind = again
    world.turn()
    assert rule(world) == "frozen"


def test_a_state_that_cannot_be_read_is_said(world: World) -> None:
    """A damaged policy state is not taken up, in part or whole."""
    before = world.mind.state
    assert "format" in str(world.mind.take_up({"format": 99}))
    assert world.mind.state == before


@pytest.mark.parametrize(
    ("info", "adapts"),
    [(None, None), (EngineInfo(), False), (EngineInfo(adaptive=False), False), (EngineInfo(adaptive=True), True)],
)
def test_an_engine_that_tells_nothing_may_do_anything(
    world: World, info: EngineInfo | None, adapts: bool | None
) -> None:
    """Only an engine that answers can be known not to adapt itself."""
    world.watch.info = info
    assert view_of(world.watch, world.beside, world.standing, SETTINGS, world.now).adapts_itself is adapts


def test_what_is_not_known_is_none(world: World) -> None:
    """Before the first answer there is neither load nor mode nor way, and the decision says so."""
    world.watch.sample, world.watch.mode, world.watch.look_age_s = None, None, None
    world.beside = Beside(ways=None, rates=None)
    view = view_of(world.watch, world.beside, world.standing, SETTINGS, world.now)
    assert (view.mode, view.concurrency, view.age_s, view.modes, view.costs.price(DDTREE, NONE)) == (
        None,
        None,
        None,
        (),
        None,
    )
    world.turn()
    assert (rule(world), world.mind.gain_ratio) == ("input-missing", None)
