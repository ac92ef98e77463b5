"""Which modes there are and what it takes to get there, from a host's own records and its engine's word."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control.mode import mode
from specctl.control.policy_types import Means
from specctl.fleet.types import AgentSettings
from specctl_agent.hands import open_hands
from specctl_agent.intent import Intents
from specctl_agent.places import Place, Places
from specctl_agent.ways import MOST_MODES, RECORDS_BYTES, WaysSampler, candidates, past_drain_s, past_loads
from tests.agentworld import ACT, DDTREE, DFLASH, NONE, tree
from tests.unit.agent.hostworld import lay_out


def place_of(folder: Path, agent: AgentSettings = ACT) -> Place:
    """Return a server's place; nobody listens at its port."""
    lay_out(folder, 1, agent)
    found = Places(folder).find("lab")
    assert found is not None
    return found


def record(algo: str, load_s: float | None, **durations: float) -> Mapping[str, object]:
    """Return a record of a deploy that went well."""
    return {
        "act": "deploy",
        "result": "done",
        "algo": algo,
        "serving": ["1", algo],
        "load_s": load_s,
        "durations_s": durations,
    }


def test_candidates_are_what_the_agent_owns(tmp_path: Path) -> None:
    """Each algo that it owns as a release starts it, each owned knob at its bounds and the powers of two between."""
    place = place_of(tmp_path)
    assert candidates(place, DDTREE) == (DDTREE, NONE, DFLASH, tree(4), tree(8), tree(32))


def test_without_owned_algos_only_the_running_one_counts(tmp_path: Path) -> None:
    """Where the inventory keeps the algo, the agent turns its own knobs and nothing else; with neither, nothing."""
    place = place_of(tmp_path, replace(ACT, algos=()))
    assert {each.algo for each in candidates(place, DDTREE)} == {"ddtree"}
    assert candidates(place_of(tmp_path / "b", AgentSettings()), DFLASH) == (DFLASH,)
    assert candidates(place_of(tmp_path / "c", AgentSettings()), None) == ()


def test_candidates_are_bounded(tmp_path: Path) -> None:
    """However wide the bounds, the policy is not given more modes than it can weigh each second."""
    wide = replace(ACT, knobs={"ddtree": {"tree_budget": (1, 1024), "topk_cap": (1, 64)}})
    assert len(candidates(place_of(tmp_path, wide), DDTREE)) == MOST_MODES


def test_past_loads_and_drains_are_medians_of_the_newest(tmp_path: Path) -> None:
    """The newest five loads of each algo count, and stops with the draining before them; nothing recorded is nothing known."""
    place = place_of(tmp_path)
    assert (past_loads(place), past_drain_s(place)) == ({}, 0.0)
    rows = [record("dflash", load, drain=1.0, stop=2.0) for load in (900.0, 480.0, 470.0, 490.0, 480.0, 475.0)]
    rows += [record("ddtree", None), {"result": "done", "load_s": "soon"}]
    text = "\n".join(json.dumps(row) for row in rows) + '\n{"torn'
    (place.folder / "records.jsonl").write_text(text)
    assert (past_loads(place), past_drain_s(place)) == ({"dflash": 480.0}, 3.0)


def test_a_long_history_is_read_from_its_end(tmp_path: Path) -> None:
    """Only the newest half megabyte is read, whatever the file has grown to."""
    place = place_of(tmp_path)
    old, new = json.dumps(record("dflash", 900.0)), json.dumps(record("dflash", 100.0))
    count = RECORDS_BYTES // len(new) + 1
    (place.folder / "records.jsonl").write_text(f"{old}\n" * count + f"{new}\n" * count)
    assert past_loads(place) == {"dflash": 100.0}


@pytest.mark.parametrize(("outage_ok", "refused"), [(True, {Means.LIVE}), (False, {Means.LIVE, Means.RESTART})])
def test_an_engine_that_does_not_answer_takes_nothing_live(
    tmp_path: Path, outage_ok: bool, refused: set[Means]
) -> None:
    """What nobody can ask is refused with the reason; a restart needs that requests can be taken off, or an accepted outage."""
    place = place_of(tmp_path, replace(ACT, outage_ok=outage_ok))
    stopping = threading.Event()
    intents = Intents(tmp_path / "intents.jsonl", boot="b", wall=lambda: 0.0)
    hands = open_hands(place, state=tmp_path, intents=intents, boot="b", stopping=stopping)
    ways = WaysSampler(place, hands, DDTREE).sample()
    assert set(ways.refused) == refused
    assert ways.costs.price(DDTREE, mode("none")) is None
