"""What a running engine must be told to change its mode, by its profile: fields of flags, or fields of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.control.mode import Mode, mode
from specctl.control.table import Table
from specctl.engines.types import EngineProfile
from specctl.fleet.profiles import Profiles
from specctl.ops import engine_live
from specctl.ops.engine_live import CannotError, change, fields

NONE = mode("none")
CHAIN = mode("dflash", {"block_size": 8})


def tree(budget: int, topk: int = 4, block: int = 8) -> Mode:
    """Return a tree."""
    return mode("ddtree", {"block_size": block, "tree_budget": budget, "topk_cap": topk})


def profile(name: str) -> EngineProfile:
    """Return a built-in profile."""
    found = Profiles({}, BuiltInProfiles()).get(name)
    assert found is not None
    return found


PLUGIN = profile("sglang-0.5.23+ddtree")
LAB = profile("lab")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (NONE, {"ddtree_budget": 0}),
        (CHAIN, {"ddtree_budget": 7, "ddtree_topk": 1}),
        (tree(16), {"ddtree_budget": 16, "ddtree_topk": 4}),
    ],
)
def test_the_plugin_is_told_budget_and_topk(wanted: Mode, told: dict[str, int]) -> None:
    """No draft is a budget of 0, the chain one alternative and the block's depths, a tree its own two knobs."""
    assert fields(PLUGIN, wanted) == told


def test_what_no_running_engine_changes_must_be_so_already() -> None:
    """The block is the draft's: a chain or a tree of another one is no live change, whatever the budget."""
    assert change(PLUGIN, NONE, CHAIN).needs == {"ddtree_block_size": 8}
    assert change(PLUGIN, CHAIN, tree(16, block=16)).needs == {"ddtree_block_size": 16}
    with pytest.raises(CannotError, match="block_size of ddtree only at its start"):
        change(PLUGIN, tree(16), tree(16, block=4))


def test_a_knob_that_is_not_known_cannot_be_told() -> None:
    """A chain whose block nobody knows has no budget that stands for it."""
    with pytest.raises(CannotError, match="block_size of dflash is not known"):
        fields(PLUGIN, mode("dflash"))


def test_the_whole_mode_is_told_where_fields_are_the_engines_own() -> None:
    """A budget alone would leave a top-k of another hand's, and would not end a table."""
    assert change(PLUGIN, tree(16), tree(24)).tell == {"ddtree_budget": 24, "ddtree_topk": 4}


def test_the_lab_is_told_what_its_flags_say() -> None:
    """Another algo takes what selects it and all its knobs, another knob that knob alone."""
    assert change(LAB, CHAIN, tree(16)).tell == {
        "speculative_algorithm": "DDTREE",
        "speculative_dflash_block_size": 8,
        "speculative_ddtree_budget": 16,
        "speculative_ddtree_topk_cap": 4,
    }
    assert change(LAB, tree(16), tree(24)).tell == {"speculative_ddtree_budget": 24}


def test_stock_takes_nothing() -> None:
    """Stock SGLang changes nothing of its draft while it runs, and the reason names it."""
    with pytest.raises(CannotError, match=r"sglang-0\.5\.23 takes algo, block_size of dflash only at its start"):
        change(profile("sglang-0.5.23"), NONE, CHAIN)
    cold = replace(PLUGIN, algos={name: replace(algo, live_knobs=()) for name, algo in PLUGIN.algos.items()})
    with pytest.raises(CannotError, match="takes algo of dflash only at its start"):
        change(cold, NONE, CHAIN)


def test_nothing_to_change_is_said() -> None:
    """The same mode is no change."""
    with pytest.raises(CannotError, match="nothing to change"):
        change(PLUGIN, CHAIN, CHAIN)


def test_what_the_engine_says_is_held_against_it() -> None:
    """Every rank must say what was told."""
    info = {"internal_states": [{"ddtree_budget": 7, "ddtree_topk": 1}, {"ddtree_budget": 7, "ddtree_topk": 4}]}
    assert engine_live.differing(info, fields(PLUGIN, CHAIN)) == ("ddtree_topk is 4, not 1",)


TABLE = Table(((1, tree(16)), (4, CHAIN), (9, NONE)))


def test_a_table_is_told_row_by_row() -> None:
    """Each row's fields bear its least number of requests."""
    assert engine_live.table_fields(PLUGIN, TABLE) == {
        "ddtree_budget_from_1": 16,
        "ddtree_topk_from_1": 4,
        "ddtree_budget_from_4": 7,
        "ddtree_topk_from_4": 1,
        "ddtree_budget_from_9": 0,
    }
    with pytest.raises(CannotError, match="lab follows no table"):
        engine_live.table_fields(LAB, TABLE)


def test_every_rank_must_follow_the_whole_table() -> None:
    """A row that is missing, another one, or a rank that follows none, is said; no table is asked for with None."""
    rows = [
        {"from": 1, "ddtree_budget": 16, "ddtree_topk": 4},
        {"from": 4, "ddtree_budget": 7, "ddtree_topk": 1},
        {"from": 9, "ddtree_budget": 0, "ddtree_topk": 1},
    ]
    good = {"ddtree_policy": rows}
    assert engine_live.unlike(PLUGIN, {"internal_states": [good, good]}, TABLE) == ()
    assert engine_live.unlike(PLUGIN, {"internal_states": [good, {}]}, TABLE) == ("ddtree_policy has 0 rows, not 3",)
    other = {"ddtree_policy": [*rows[:2], {**rows[2], "ddtree_budget": 3}]}
    assert len(engine_live.unlike(PLUGIN, {"internal_states": [other]}, TABLE) or ()) == 1
    assert engine_live.unlike(PLUGIN, None, TABLE) is None
    assert engine_live.unlike(PLUGIN, {"internal_states": [{"ddtree_policy": []}]}, None) == ()
    assert engine_live.unlike(PLUGIN, {"internal_states": [good]}, None) == ("ddtree_policy has 3 rows, not 0",)
