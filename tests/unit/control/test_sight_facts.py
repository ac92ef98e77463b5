"""How a server stands by its facts: the state in a word, what is wanted, deployed and live, and who may choose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.sight import LastAct, State, mode_of
from specctl.control.sight_engine import EngineSight, figures
from specctl.control.sight_facts import blank, standing, state_of, with_engine
from specctl.fleet.types import AgentMode, AgentSettings
from specctl.rollout.facts import ServerFacts
from specctl.rollout.observation import Port, UnitState
from tests import fakes

MANIFEST = {"knobs": {"dflash": {"block_size": 8}, "ddtree": {"tree_budget": 7, "topk_cap": 2}}}
FACTS = fakes.facts(MANIFEST)
AT = "2026-11-29T14:00:00+00:00"
AT_S = 1_795_960_800.0


@pytest.mark.parametrize(
    ("facts", "ready", "frozen", "said"),
    [
        (ServerFacts(name="chat"), True, False, "not deployed"),
        (ServerFacts(name="chat", unreadable="permission denied: /x"), True, False, "unknown"),
        (replace(FACTS, unit=UnitState(active="failed", exit_status=137)), False, False, "failed (137)"),
        (replace(FACTS, unit=UnitState(active="failed")), False, False, "failed"),
        (replace(FACTS, unit=UnitState(active="inactive")), True, False, "stopped"),
        (replace(FACTS, unit=UnitState()), True, False, "unknown"),
        (replace(FACTS, unit=UnitState(active="deactivating")), True, False, "deactivating"),
        (replace(FACTS, port=Port.FOREIGN), True, False, "port taken"),
        (replace(FACTS, port=Port.REFUSED), True, False, "loading"),
        (FACTS, True, False, "ready"),
        (FACTS, False, False, "not ready"),
        (FACTS, True, True, "frozen"),
    ],
)
def test_states(facts: ServerFacts, ready: bool, frozen: bool, said: str) -> None:
    """What the service manager and the port say goes before what an engine answers."""
    assert state_of(facts, ready=ready, frozen=frozen) == said


def test_before_the_first_look() -> None:
    """What nobody has looked at shows what the inventory wants, and that it is not known yet."""
    found = blank(fakes.HOST, fakes.SERVER)
    assert (found.state, found.desired, found.age_s) == (State.UNKNOWN.value, mode_of("dflash", {}), None)
    assert (found.deployed, found.live, found.running, found.gpus) == (None, None, None, None)


def test_what_may_not_be_read_is_not_taken_for_nothing() -> None:
    """The reason and what to do about it are told once, not again among the warnings."""
    why = "permission denied: /var/lib/specctl/chat/releases/1/manifest.json"
    found = standing(fakes.HOST, fakes.SERVER, ServerFacts(name="chat", unreadable=why, warnings=(why, "other")), None)
    assert (found.state, found.reason) == ("unknown", f"what is deployed cannot be read: {why}")
    assert "sudo: true" in str(found.hint)
    assert found.warnings == ("other",)


def test_wanted_deployed_and_live() -> None:
    """What the inventory wants, what a start would run and what runs are three things; an idle unit runs nothing."""
    server = replace(fakes.SERVER, algo="ddtree")
    found = standing(fakes.HOST, server, FACTS, None)
    tree, chain = mode_of("ddtree", {"tree_budget": 7, "topk_cap": 2}), mode_of("dflash", {"block_size": 8})
    assert (found.desired, found.deployed, found.live, found.live_by) == (tree, chain, chain, None)
    stopped = standing(fakes.HOST, server, replace(FACTS, unit=UnitState(active="inactive")), None)
    assert (stopped.deployed, stopped.live, stopped.mode) == (chain, None, chain)


def test_a_live_change_is_what_runs() -> None:
    """A running engine that was told something else runs that; by whom, and since when."""
    moved = {
        "live": True,
        "invocation": "i1",
        "algo": "ddtree",
        "knobs": {"tree_budget": 3},
        "who": "ops@desk",
        "proof": "proven",
        "result": "done",
        "at": "2026-11-29T14:02:11+00:00",
    }
    found = standing(fakes.HOST, fakes.SERVER, replace(FACTS, records=(moved,)), None)
    assert (found.live, found.live_by, found.proven) == (mode_of("ddtree", {"tree_budget": 3}), "ops@desk", True)
    assert found.live_at == "2026-11-29T14:02:11+00:00"
    assert found.deployed == mode_of("dflash", {"block_size": 8})


def test_a_start_that_nobody_waited_for_proves_nothing() -> None:
    """After --no-gate an earlier proof of the same release says nothing of what runs; of another release it says nothing at all."""
    served = {"result": "done", "release": "3", "algo": "dflash", "serving": ["3", "dflash"], "proof": "proven"}
    ungated = {"result": "started, not gated", "release": "3", "algo": "dflash"}
    for rows, proven in (
        ((served,), True),
        ((served, ungated), False),
        ((ungated, served), True),
        ((served, {**ungated, "algo": "ddtree"}), True),
        ((served, {"result": "failed", "serving": ["3", "dflash"], "proof": None}), True),
    ):
        assert standing(fakes.HOST, fakes.SERVER, replace(FACTS, records=rows), None).proven is proven


def test_who_may_choose() -> None:
    """Only an agent that acts owns anything: the algo where it has a choice, and the knobs that the inventory gives it."""
    agent = AgentSettings(mode=AgentMode.ACT, algos=("none", "dflash"), knobs={"dflash": {"block_size": (2, 8)}})
    acting = replace(fakes.SERVER, agent=agent)
    assert standing(fakes.HOST, acting, FACTS, None).owned == ("algo", "block_size")
    watching = replace(acting, agent=replace(agent, mode=AgentMode.OBSERVE))
    assert standing(fakes.HOST, watching, FACTS, None).owned == ()


def test_the_last_act_has_the_hosts_own_age() -> None:
    """The newest record is the last act, its age by the host's clock; the agent is called so, and no age is below 0."""
    records = ({"act": "deploy", "at": AT, "who": "specctl-agent", "result": "done"},)
    found = standing(fakes.HOST, fakes.SERVER, replace(FACTS, records=records), AT_S + 90.0)
    assert found.last == LastAct(act="deploy", at=AT, age_s=90.0, who="agent", result="done")
    early = standing(fakes.HOST, fakes.SERVER, replace(FACTS, records=records), AT_S - 90.0)
    assert early.last is not None
    assert early.last.age_s == 0.0
    unclear = standing(fakes.HOST, fakes.SERVER, replace(FACTS, records=({"act": "deploy", "at": "soon"},)), AT_S)
    assert unclear.last == LastAct(act="deploy", at="soon")


def test_an_engine_that_answers() -> None:
    """What the engine answers makes it ready or not, and its figures are the sight's."""
    base = standing(fakes.HOST, fakes.SERVER, FACTS, None)
    engine = EngineSight(at_s=1.0, ready=200)
    found = with_engine(base, FACTS, engine, figures(engine))
    assert (found.state, found.ready, found.running) == ("ready", True, None)
    silent = with_engine(base, FACTS, replace(engine, ready=503), figures(engine))
    assert (silent.state, silent.ready) == ("not ready", False)
