"""What /server_info claims, and which mode of a profile that is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.control.mode import Mode, mode
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo
from specctl.engines.types import AlgoProfile, EngineProfile
from specctl.fleet.profiles import Profiles

RECORDED = Path(__file__).parents[3] / "data" / "sglang-0.5.23" / "dialect" / "server_info.json"
BLOCK = "--speculative-dflash-block-size"
PROFILE = EngineProfile(
    name="test-engine",
    engine="sglang",
    version=None,
    module=("engine",),
    flags={},
    aliases={"--speculative-num-draft-tokens": BLOCK},
    algos={
        "none": AlgoProfile(algo="none"),
        "dflash": AlgoProfile(algo="dflash", select={"--speculative-algorithm": "DFLASH"}, knobs={"block_size": BLOCK}),
        "ddtree": AlgoProfile(
            algo="ddtree",
            select={"--speculative-algorithm": "DDTREE"},
            knobs={"block_size": BLOCK, "tree_budget": "--speculative-ddtree-budget"},
            knob_env={"topk_cap": "TOPK"},
        ),
    },
)


def told(**said: object) -> EngineInfo:
    """Return the claims of a server whose live state says this."""
    info = engine_info.parse(json.dumps({"internal_states": [said]}).encode())
    assert info is not None
    return info


def test_a_recorded_server_is_read() -> None:
    """Version, seed, limits and the algo of a recorded DFLASH server; its block is told as draft tokens."""
    info = engine_info.parse(RECORDED.read_bytes())
    assert info is not None
    assert (info.version, info.metrics_enabled, info.adaptive, info.max_running) == ("0.5.23", True, False, 8)
    assert info.startup_s["tokenizer_e2e"] == pytest.approx(15.07, abs=0.01)
    assert engine_info.claimed(info, PROFILE) == mode("dflash", {"block_size": 8})


@pytest.mark.parametrize(
    ("said", "claimed"),
    [
        ({"speculative_algorithm": None}, mode("none")),
        ({"speculative_algorithm": "NONE"}, mode("none")),
        ({"speculative_algorithm": "dflash", "speculative_dflash_block_size": 4}, mode("dflash", {"block_size": 4})),
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}, mode("dflash", {"block_size": 8})),
        (
            {"speculative_algorithm": "DDTREE", "speculative_ddtree_budget": 7, "speculative_num_draft_tokens": 8},
            mode("ddtree", {"tree_budget": 7}),
        ),
        ({"speculative_algorithm": "EAGLE"}, None),
        ({"speculative_algorithm": "DFLASH", "speculative_dflash_block_size": 4000}, None),
        ({"speculative_algorithm": 3}, None),
        ({}, None),
    ],
)
def test_a_claim_is_read_by_the_profile(said: dict[str, object], claimed: Mode | None) -> None:
    """The algo by the flags that select it, knobs by their flags, a chain's block by its alias; what fits none is None."""
    assert engine_info.claimed(told(**said), PROFILE) == claimed


def test_live_state_wins_over_arguments() -> None:
    """After a live switch the state differs from the arguments of the start: the state counts."""
    document = {"speculative_algorithm": "DFLASH", "internal_states": [{"speculative_algorithm": None}]}
    info = engine_info.parse(json.dumps(document).encode())
    assert info is not None
    assert engine_info.claimed(info, PROFILE) == mode("none")


def test_knobs_that_are_not_told_are_those_deployed() -> None:
    """A knob set by environment is in no answer: it is taken from the deploy; one that is told wins over it."""
    info = told(speculative_algorithm="DDTREE", speculative_ddtree_budget=7)
    deployed = {"ddtree": {"topk_cap": 2, "tree_budget": 16}, "dflash": {"block_size": 8}}
    assert engine_info.claimed(info, PROFILE, deployed) == mode("ddtree", {"tree_budget": 7, "topk_cap": 2})


def test_an_answer_of_something_else_tells_nothing() -> None:
    """A JSON object without a state and without an algorithm is no /server_info."""
    assert engine_info.parse(b'{"detail": "Not Found"}') is None


def plugged(budget: int, topk: int = 4, block: int = 8, **more: object) -> EngineInfo:
    """Return what a server with the plugin tells."""
    state = {"ddtree_budget": budget, "ddtree_topk": topk, "ddtree_block_size": block}
    return told(speculative_algorithm="DDTREE", speculative_num_draft_tokens=25, **state, **more)


@pytest.mark.parametrize(
    ("info", "claimed"),
    [
        (plugged(0), mode("none")),
        (plugged(0, topk=1), mode("none")),
        (plugged(7, topk=1), mode("dflash", {"block_size": 8})),
        (plugged(15, topk=1, block=16), mode("dflash", {"block_size": 16})),
        (plugged(3, topk=1), mode("ddtree", {"block_size": 8, "tree_budget": 3, "topk_cap": 1})),
        (plugged(7), mode("ddtree", {"block_size": 8, "tree_budget": 7, "topk_cap": 4})),
        (plugged(16, topk=4), mode("ddtree", {"block_size": 8, "tree_budget": 16, "topk_cap": 4})),
        (told(speculative_algorithm=None), mode("none")),
        (plugged(16, topk=400), None),
        (told(speculative_algorithm="DDTREE"), None),
    ],
)
def test_a_server_with_the_plugin_tells_its_mode(info: EngineInfo, claimed: Mode | None) -> None:
    """No draft and the chain are trees of a kind: what leaves the least open is meant. A cold server without it drafts nothing."""
    profile = Profiles({}, BuiltInProfiles()).get("sglang-0.5.23+ddtree")
    assert profile is not None
    assert engine_info.claimed(info, profile, {"dflash": {"block_size": 4}}) == claimed


def row(at: int, budget: int, topk: int) -> dict[str, int]:
    """Return a row of the plugin's policy as it tells it."""
    return {"from": at, "ddtree_budget": budget, "ddtree_topk": topk}


@pytest.mark.parametrize(
    ("rows", "follows", "modes"),
    [
        ([row(1, 16, 4), row(4, 7, 1), row(9, 0, 1)], True, ["ddtree", "dflash", "none"]),
        ([], False, None),
        ([row(1, 16, 400)], True, None),
        ([row(4, 16, 4), row(1, 7, 1)], True, None),
        ([{"ddtree_budget": 7, "ddtree_topk": 1}], True, None),
        ([{"from": "many"}], False, None),
        ("no list", False, None),
    ],
)
def test_a_table_is_read_row_by_row(rows: object, follows: bool, modes: list[str] | None) -> None:
    """Each row is the mode that it would tell alone; what is not understood is followed all the same, and no table of ours."""
    profile = Profiles({}, BuiltInProfiles()).get("sglang-0.5.23+ddtree")
    assert profile is not None
    info = plugged(16, ddtree_policy=rows)
    found = engine_info.table(info, profile)
    assert engine_info.follows(info, profile) is follows
    assert (None if found is None else [mode.algo for _, mode in found.rows]) == modes
    assert engine_info.table(info, PROFILE) is None
