"""From arm to arm: what a running engine can be told, what an experiment costs, and what of a deploy is worth saying."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.control.mode import mode
from specctl.doctor.evidence import Speed
from specctl.errors import UsageError
from specctl.fleet.profiles import Profiles
from specctl.fleet.types import Server
from specctl.measure.ab_trial import Ask
from specctl.ops.ab import ASSUMED_TOKENS_S, cost, seen
from specctl.ops.ab_segment import level_of, name_of
from specctl.ops.ab_ways import Brief, mode_of, refuse_cold
from specctl.rollout.gate_types import GateState
from tests.abtrials import trial
from tests.fakes import PROFILE, SERVER

WHOLE = trial((100.0, 101.0, 100.5, 100.2), (100.3, 100.9, 100.1, 100.6), concurrency=(1, 8))
ASK = Ask(a="dflash", b="ddtree", live=True)
LIVE = {
    "dflash": replace(PROFILE.algos["dflash"], live_knobs=("algo", "block_size")),
    "ddtree": replace(PROFILE.algos["ddtree"], live_knobs=("algo", "tree_budget")),
}


def pair(server: Server) -> tuple[Server, Server]:
    """Return a server as chain and as tree."""
    return replace(server, algo="dflash"), replace(server, algo="ddtree")


def test_a_mode_has_the_knobs_that_its_flags_spell() -> None:
    """The draft's own block size counts where none is set; a knob that only a start takes is none of a running engine's."""
    one, other = pair(SERVER)
    assert [str(mode_of(one)), str(mode_of(other))] == ["dflash:block_size=16", "ddtree:tree_budget=7"]


def test_a_knob_that_a_running_engine_is_told_is_of_its_mode() -> None:
    """Budget and top-k have no flag with the plugin, and are told all the same: both arms can be reached live."""
    plugin = Profiles({}, BuiltInProfiles()).get("sglang-0.5.23+ddtree")
    assert plugin is not None
    tree = {"block_size": 8, "tree_budget": 16, "topk_cap": 4}
    one, other = pair(replace(SERVER, profile=plugin, knobs={"dflash": {"block_size": 8}, "ddtree": tree}))
    assert [str(mode_of(one)), str(mode_of(other))] == [
        "dflash:block_size=8",
        "ddtree:block_size=8,topk_cap=4,tree_budget=16",
    ]
    refuse_cold((one, other), ASK)


def test_what_only_a_start_takes_cannot_be_told() -> None:
    """An engine whose profile names no live knobs is refused in words; one that names them is not."""
    with pytest.raises(UsageError, match="--live: test-engine takes algo"):
        refuse_cold(pair(SERVER), ASK)
    refuse_cold(pair(replace(SERVER, profile=replace(PROFILE, algos={**PROFILE.algos, **LIVE}))), ASK)
    refuse_cold((replace(SERVER, algo="dflash"), replace(SERVER, algo="dflash")), ASK)


@pytest.mark.parametrize(
    "ask", [replace(ASK, options_b=("x=1",)), replace(ASK, env_b=("X=1",)), replace(ASK, third_arm=True)]
)
def test_options_and_variables_cannot_be_told(ask: Ask) -> None:
    """What is of a launch needs a start."""
    with pytest.raises(UsageError, match="neither options nor variables"):
        refuse_cold(pair(SERVER), ask)


def test_cost_is_a_load_a_segment_and_one_back() -> None:
    """Before it begins this host's past loads count, then the experiment's own; a live one has none."""
    begun = replace(WHOLE, segments=())
    assert (cost(begun, [400.0, 500.0]).loads, cost(begun, [400.0, 500.0]).load_s) == (9, 450.0)
    assert (cost(begun, []).load_s, cost(begun, []).total_s) == (None, None)
    half = replace(WHOLE, segments=WHOLE.segments[:4])
    assert (cost(half, [1.0]).loads, cost(half, [1.0]).load_s) == (5, 480.0)
    assert cost(half, [1.0]).measuring_s < cost(begun, []).measuring_s
    assert cost(replace(begun, ask=replace(begun.ask, live=True)), [400.0]).loads == 0


def test_cost_goes_by_what_was_measured() -> None:
    """A request is as fast as in the experiment's own segments, then as in kept benches; without either the guess is called one."""
    begun = replace(WHOLE, segments=())
    fast = Speed(mode=mode("dflash"), tokens_s=4000.0, concurrency=8.0)
    guessed, known = cost(begun, []), cost(begun, [], [fast])
    assert (guessed.assumed, known.assumed) == (True, False)
    assert known.measuring_s == pytest.approx(guessed.measuring_s * ASSUMED_TOKENS_S / 500.0)
    half = replace(WHOLE, segments=WHOLE.segments[:4])
    assert cost(half, [], [fast]) == cost(half, [])
    assert not cost(half, []).assumed


def test_runs_differ_in_their_prompts_and_arms_do_not() -> None:
    """Every level and run has a seed of its own, which knows nothing of arm or segment."""
    levels = [level_of(WHOLE.ask, number, run) for number in range(2) for run in range(3)]
    assert len({level.seed for level in levels}) == 6
    assert level_of(WHOLE.ask, 1, 2) == levels[-1]


def test_a_segment_is_named_and_told_in_a_line() -> None:
    """Its arm, its place among all, and its throughput at every concurrency."""
    assert [name_of(WHOLE, place) for place in (0, 2, 7)] == ["A 1/8", "B 3/8", "B 8/8"]
    assert seen(replace(WHOLE, segments=WHOLE.segments[:1])) == "dflash:block_size=8: tok/s 100.0 at 1, 800.0 at 8"


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def step(self, host: str, name: str, text: str) -> None:
        """Keep a step."""
        self.names.append(name)

    def gate(self, host: str, state: GateState) -> None:
        """Keep that a load goes on."""
        self.names.append("gate")

    def final(self, host: str, name: str, text: str) -> None:
        """Keep what stays."""
        self.names.append(name)


def test_only_that_it_went_well_is_not_said() -> None:
    """Proof and deployed are left out; what failed, and every step, is passed on."""
    heard = Heard()
    brief = Brief(heard)
    brief.step("gpu1", "drain", "2 running")
    for name in ("proof", "deployed", "failed", "because", "restored", "warning"):
        brief.final("gpu1", name, "text")
    assert heard.names == ["drain", "failed", "because", "restored", "warning"]
