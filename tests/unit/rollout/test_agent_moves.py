"""What the agent moved is known from the host's records, is no drift, and is kept by a deploy that names no algo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from specctl.fleet.types import AgentMode, AgentSettings
from specctl.rollout.agent_moves import LiveMove, agent_chose, as_agent_left, live_move
from specctl.rollout.facts import ServerFacts
from tests.fakes import SERVER, facts

MANIFEST = {"knobs": {"ddtree": {"tree_budget": 8, "topk_cap": 2}, "dflash": {}}}
AGENT = AgentSettings(
    mode=AgentMode.ACT, algos=("dflash", "ddtree"), knobs={"ddtree": {"tree_budget": (4, 32)}}, outage_ok=True
)
OWNED = replace(SERVER, agent=AGENT)
DEPLOY = {"who": "ann@desk", "serving": ["3", "ddtree"], "invocation": "i1", "live": False, "algo": "ddtree"}
SWITCH = {**DEPLOY, "who": "specctl-agent"}
LIVE = {
    "who": "specctl-agent", "serving": None, "invocation": "i1", "live": True, "algo": "dflash", "result": "done",
    "knobs": {"block_size": 8}, "proof": "proven", "at": "2026-11-29T14:02:11+00:00",
}  # fmt: skip


def seen(*records: Mapping[str, object], active: str = "active") -> ServerFacts:
    """Return facts of a server that runs release 3, ddtree, with these records."""
    return facts(MANIFEST, algo="ddtree", active=active, records=records)


@pytest.mark.parametrize(
    ("records", "active", "algo"),
    [
        ((DEPLOY, LIVE), "active", "dflash"),
        ((DEPLOY, LIVE, {**LIVE, "algo": "none"}), "active", "none"),
        ((DEPLOY,), "active", None),
        ((LIVE, DEPLOY), "active", None),
        ((DEPLOY, {**LIVE, "invocation": "i0"}), "active", None),
        ((DEPLOY, LIVE), "inactive", None),
        ((DEPLOY, {**LIVE, "algo": None}), "active", None),
        ((DEPLOY, LIVE, {"act": "stop"}), "active", "dflash"),
        ((DEPLOY, LIVE, {**LIVE, "algo": "none", "result": "rolled back"}), "active", "dflash"),
        ((DEPLOY, {**LIVE, "result": "failed"}), "active", None),
    ],
)
def test_a_live_move_counts_until_the_next_start(
    records: tuple[Mapping[str, object], ...], active: str, algo: str | None
) -> None:
    """Only of the process that runs, only what came after it was brought up and was not told back, and the newest of several."""
    found = live_move(seen(*records, active=active))
    assert (None if found is None else found.algo) == algo


def test_a_live_move_says_itself() -> None:
    """Algo and knobs in words, whether it was proven, and when it was told."""
    assert live_move(seen(DEPLOY, LIVE)) == LiveMove(
        algo="dflash", knobs={"block_size": 8}, proven=True, at="2026-11-29T14:02:11+00:00"
    )
    assert str(live_move(seen(DEPLOY, LIVE))) == "dflash, block_size 8"


def test_a_deploy_keeps_what_the_agent_chose() -> None:
    """The algo, and the owned knob within its bounds, of the release that the agent put into service."""
    kept = as_agent_left(replace(OWNED, algo="dflash"), seen(SWITCH))
    assert (kept.algo, kept.knobs["ddtree"]) == ("ddtree", {"tree_budget": 8, "topk_cap": 2})
    assert agent_chose(seen(SWITCH))


@pytest.mark.parametrize(
    ("agent", "record"),
    [
        (AGENT, DEPLOY),
        (replace(AGENT, mode=AgentMode.ADVISE), SWITCH),
        (replace(AGENT, algos=("none", "dflash"), knobs={}), SWITCH),
        (replace(AGENT, algos=(), knobs={"ddtree": {"tree_budget": (9, 32)}}), SWITCH),
    ],
)
def test_the_inventory_wins_over_what_is_not_the_agents(agent: AgentSettings, record: Mapping[str, object]) -> None:
    """An operator's deploy, an agent that may not act, an algo or a value that it does not own: the inventory's stays."""
    server = replace(SERVER, algo="none", agent=agent)
    found = as_agent_left(server, seen(record))
    assert (found.algo, found.knobs) == ("none", server.knobs)


def test_a_first_deploy_has_nothing_to_keep() -> None:
    """Nothing is deployed, so nothing was chosen."""
    assert as_agent_left(OWNED, facts()) == OWNED
    assert not agent_chose(facts())
