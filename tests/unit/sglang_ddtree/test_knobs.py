"""The plugin's knobs: what they default to, what is refused, and which setting holds for how many requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ddtree import knobs, tree
from sglang_ddtree.knobs import KnobError, Knobs, Limits, Row, Setting

LIMITS = Limits(block_size=8, max_budget=31, max_topk=8)
HELD = Knobs(setting=Setting(budget=16, topk=4))


def row(start: int, budget: int, topk: int) -> Row:
    """Return a policy's row."""
    return Row(start=start, setting=Setting(budget=budget, topk=topk))


RULED = Knobs(setting=Setting(budget=16, topk=4), policy=(row(1, 31, 8), row(4, 7, 1)))


def test_defaults_leave_room_for_the_chain() -> None:
    """Without a word the tree has 16 nodes of 4 a depth, and can always be turned into linear DFlash."""
    assert knobs.at_start({}, 8) == (Limits(block_size=8, max_budget=16, max_topk=4), HELD)
    limits, held = knobs.at_start({"DDTREE_BUDGET": "3", "DDTREE_TOPK": "2"}, 8)
    assert limits == Limits(block_size=8, max_budget=7, max_topk=4)
    assert held == Knobs(setting=Setting(budget=3, topk=2))


def test_topk_alone_asks_for_the_chain() -> None:
    """Top-k 1 without a budget is linear DFlash, no wider than its block; a budget that is given is kept."""
    limits, held = knobs.at_start({"DDTREE_TOPK": "1"}, 6)
    assert (limits.width, held) == (6, Knobs(setting=Setting(budget=5, topk=1)))
    assert knobs.at_start({"DDTREE_TOPK": "1", "DDTREE_BUDGET": "2"}, 6)[1].setting.budget == 2


def test_table_of_the_start_sets_the_limits() -> None:
    """Rows have a budget and a top-k, or the top-k of the start; limits reach as far as the widest row."""
    limits, held = knobs.at_start({"DDTREE_TOPK": "2", "DDTREE_POLICY": "4:7/1, 1:31/8,16:0,"}, 8)
    assert limits == Limits(block_size=8, max_budget=31, max_topk=8)
    assert held == Knobs(setting=Setting(budget=16, topk=2), policy=(row(1, 31, 8), row(4, 7, 1), row(16, 0, 2)))


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"DDTREE_BUDGET": "many"}, "DDTREE_BUDGET=many is no whole number"),
        ({"DDTREE_BUDGET": "-1"}, "DDTREE_BUDGET=-1 is outside 0 to 1024"),
        ({"DDTREE_TOPK": "0"}, "DDTREE_TOPK=0 is outside 1 to 64"),
        ({"DDTREE_BUDGET": "20", "DDTREE_MAX_BUDGET": "10"}, "DDTREE_MAX_BUDGET=10 is outside 20 to 1024"),
        ({"DDTREE_TOPK": "6", "DDTREE_MAX_TOPK": "4"}, "DDTREE_MAX_TOPK=4 is outside 6 to 64"),
        ({"DDTREE_POLICY": "1:31", "DDTREE_MAX_BUDGET": "30"}, "DDTREE_MAX_BUDGET=30 is outside 31 to 1024"),
        (
            {"DDTREE_GRAPH_BUDGETS": "8,17"},
            "DDTREE_GRAPH_BUDGETS: 17 is no budget of 0 to 16 (set DDTREE_MAX_BUDGET for more)",
        ),
        (
            {"DDTREE_GRAPH_BUDGETS": "8;16"},
            "DDTREE_GRAPH_BUDGETS: 8;16 is no budget of 0 to 16 (set DDTREE_MAX_BUDGET for more)",
        ),
        (
            {"DDTREE_GRAPH_BUDGETS": "8²"},
            "DDTREE_GRAPH_BUDGETS: 8² is no budget of 0 to 16 (set DDTREE_MAX_BUDGET for more)",
        ),
        ({"DDTREE_POLICY": "1:31/8", "DDTREE_MAX_TOPK": "7"}, "DDTREE_MAX_TOPK=7 is outside 8 to 64"),
        (
            {"DDTREE_POLICY": "4=8"},
            "DDTREE_POLICY: 4=8 is no row like 4:8/2 (from 4 requests on, a budget of 8 with top-k 2)",
        ),
        (
            {"DDTREE_POLICY": "1:31/8,4:8/"},
            "DDTREE_POLICY: 4:8/ is no row like 4:8/2 (from 4 requests on, a budget of 8 with top-k 2)",
        ),
        ({"DDTREE_POLICY": "0:8"}, "a policy's row begins at 0 requests; the least is 1"),
        ({"DDTREE_POLICY": "1:8,01:4"}, "a policy has two rows from 1 on"),
        ({"DDTREE_POLICY": "1:2000"}, "DDTREE_POLICY: the budget of 1:2000 is outside 0 to 1024"),
        ({"DDTREE_POLICY": "1:20/65"}, "DDTREE_POLICY: the top-k of 1:20/65 is outside 1 to 64"),
        ({"DDTREE_POLICY": "1:20/0"}, "DDTREE_POLICY: the top-k of 1:20/0 is outside 1 to 64"),
    ],
)
def test_bad_words_at_the_start_are_named(environ: dict[str, str], message: str) -> None:
    """A variable that cannot be so is refused with its name, its value and what it may be."""
    with pytest.raises(KnobError) as refused:
        knobs.at_start(environ, 8)
    assert str(refused.value) == message


def test_metrics_come_as_often_as_decode_lines_or_more_often() -> None:
    """The line of metrics comes every 40 steps, or as often as it is asked for, and never less often than decode lines."""
    assert [knobs.every({}, lines) for lines in (40, 1, 1000)] == [40, 1, 40]
    assert [knobs.every({"DDTREE_METRICS_EVERY": asked}, 100) for asked in ("5", "100")] == [5, 100]
    for asked in ("0", "41"):
        with pytest.raises(KnobError, match=f"DDTREE_METRICS_EVERY={asked} is outside 1 to 40 .*--decode-log-interval"):
            knobs.every({"DDTREE_METRICS_EVERY": asked}, 40)


def test_policy_decides_by_requests() -> None:
    """The last row that fits decides, budget and top-k; below the first row, the first; without rows, the setting."""
    held = Knobs(setting=HELD.setting, policy=(row(2, 31, 8), row(4, 7, 1), row(8, 0, 4)))
    tree, chain, none = (one.setting for one in held.policy)
    assert [held.at(requests) for requests in (1, 2, 3, 4, 7, 8, 100)] == [tree, tree, tree, chain, chain, none, none]
    assert HELD.at(100) == Setting(budget=16, topk=4)


def test_width_holds_the_block_too() -> None:
    """A pass is as wide as the tree with its root, and never narrower than the draft's block."""
    assert (LIMITS.width, Limits(block_size=8, max_budget=3, max_topk=1).width) == (32, 8)


@given(budget=st.integers(0, 50), topk=st.integers(1, 4), deepest=st.integers(1, 6))
def test_nodes_are_those_that_a_tree_gets(budget: int, topk: int, deepest: int) -> None:
    """The number of nodes that a pass is made for without looking at the device is the number there is."""
    scores = [[-1.0 - rank for rank in range(topk)] for _ in range(deepest)]
    tokens = [list(range(topk)) for _ in range(deepest)]
    found = tree.grow(0, tokens, scores, budget)
    assert Setting(budget=budget, topk=topk).nodes(deepest + 1) == len(found.tokens)


def test_chain_is_the_block_whatever_the_budget() -> None:
    """With top-k 1 no budget makes a pass wider than the block, and with budget 0 the root is alone."""
    assert [Setting(budget=budget, topk=1).nodes(8) for budget in (0, 3, 7, 8, 1024)] == [1, 4, 8, 8, 8]


def test_live_changes_take_what_they_name() -> None:
    """A budget or a top-k holds from now on and ends a policy; what is not named stays."""
    assert knobs.changed(RULED, LIMITS, {"ddtree_budget": 7.0}) == Knobs(setting=Setting(budget=7, topk=4))
    assert knobs.changed(RULED, LIMITS, {"ddtree_topk": 1}) == Knobs(setting=Setting(budget=16, topk=1))
    assert knobs.changed(HELD, LIMITS, {"ddtree_topk": 1, "ddtree_budget": 0}) == Knobs(
        setting=Setting(budget=0, topk=1)
    )
    assert knobs.changed(RULED, LIMITS, {}) == RULED


def test_live_rows_replace_the_table() -> None:
    """Rows are the whole new table; one without its top-k has the present one, which stays for the time after."""
    rows = {"ddtree_budget_from_8": 0, "ddtree_budget_from_1": 31.0, "ddtree_topk_from_1": 2, "ddtree_topk_from_08": 1}
    changed = knobs.changed(RULED, LIMITS, rows)
    assert changed == Knobs(setting=RULED.setting, policy=(row(1, 31, 2), row(8, 0, 1)))
    assert knobs.changed(RULED, LIMITS, {"ddtree_budget_from_3": 5}).policy == (row(3, 5, 4),)


UNKNOWN = "is no knob: ddtree_budget, ddtree_topk, ddtree_budget_from_N and ddtree_topk_from_N are"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"ddtree_budget": 32},
            "ddtree_budget=32 is outside 0 to 31 (set DDTREE_MAX_BUDGET before the start for more)",
        ),
        ({"ddtree_budget": 3.5}, "ddtree_budget=3.5 is no whole number"),
        ({"ddtree_budget": float("nan")}, "ddtree_budget=nan is no whole number"),
        ({"ddtree_budget": float("inf")}, "ddtree_budget=inf is no whole number"),
        ({"ddtree_topk": 0}, "ddtree_topk=0 is outside 1 to 8 (set DDTREE_MAX_TOPK before the start for more)"),
        ({"ddtree_depth": 2}, f"ddtree_depth {UNKNOWN}"),
        ({"ddtree_policy": 2}, f"ddtree_policy {UNKNOWN}"),
        ({"ddtree_topk": 2, "dspark_x": 1}, f"dspark_x {UNKNOWN}"),
        ({"ddtree_budget_from_x": 2}, f"ddtree_budget_from_x {UNKNOWN}"),
        (
            {"ddtree_budget_from_2": 32},
            "ddtree_budget_from_2=32 is outside 0 to 31 (set DDTREE_MAX_BUDGET before the start for more)",
        ),
        (
            {"ddtree_budget_from_2": 3, "ddtree_topk_from_2": 9},
            "ddtree_topk_from_2=9 is outside 1 to 8 (set DDTREE_MAX_TOPK before the start for more)",
        ),
        ({"ddtree_budget_from_0": 2}, "a policy's row begins at 0 requests; the least is 1"),
        ({"ddtree_budget_from_1": 2, "ddtree_budget_from_01": 3}, "a policy has two rows from 1 on"),
        (
            {"ddtree_budget_from_1": 2, "ddtree_topk_from_1": 3, "ddtree_topk_from_01": 3},
            "a policy has two rows from 1 on",
        ),
        (
            {"ddtree_budget_from_1": 2, "ddtree_topk_from_4": 3},
            "ddtree_topk_from_4 was given without ddtree_budget_from_4",
        ),
        (
            {"ddtree_budget": 2, "ddtree_budget_from_1": 2},
            "ddtree_budget and a policy's rows were given at once: it ends the policy",
        ),
        (
            {"ddtree_budget_from_1": 2, "ddtree_topk": 2},
            "ddtree_topk and a policy's rows were given at once: it ends the policy",
        ),
    ],
)
def test_bad_live_changes_are_named(wanted: dict[str, float], message: str) -> None:
    """A change that cannot be is refused whole, in words for the log."""
    with pytest.raises(KnobError) as refused:
        knobs.changed(RULED, LIMITS, wanted)
    assert str(refused.value) == message


KNOWN = ("ddtree_budget", "ddtree_topk", "ddtree_budget_from_3", "ddtree_topk_from_3", "ddtree_budget_from_03")
names = st.one_of(st.text(max_size=12), st.sampled_from(KNOWN))


@given(wanted=st.dictionaries(names, st.one_of(st.integers(-5, 50), st.floats()), max_size=4))
def test_nothing_gets_past_the_limits(wanted: dict[str, float]) -> None:
    """Whatever is asked for, the knobs either stay within the limits or are refused by a KnobError, never by another error."""
    try:
        held = knobs.changed(HELD, LIMITS, wanted)
    except KnobError:
        return
    for setting in held.settings():
        assert 1 <= setting.topk <= LIMITS.max_topk
        assert 0 <= setting.budget <= LIMITS.max_budget


@given(
    rows=st.dictionaries(
        st.integers(1, 999), st.tuples(st.integers(0, 31), st.one_of(st.none(), st.integers(1, 8))), min_size=1
    )
)
def test_a_table_is_the_same_by_either_way(rows: dict[int, tuple[int, int | None]]) -> None:
    """A table said at the start and one said live are one, and what is told of it can be said again."""
    text = ",".join(
        f"{start}:{budget}" + (f"/{topk}" if topk is not None else "") for start, (budget, topk) in rows.items()
    )
    limits, held = knobs.at_start({"DDTREE_POLICY": text, "DDTREE_MAX_BUDGET": "31", "DDTREE_MAX_TOPK": "8"}, 8)
    live = {f"ddtree_budget_from_{start}": float(budget) for start, (budget, _) in rows.items()}
    live |= {f"ddtree_topk_from_{start}": float(topk) for start, (_, topk) in rows.items() if topk is not None}
    assert knobs.changed(HELD, limits, live) == held
    assert knobs.parse_policy(knobs.told(limits, held).split("policy=")[1], 3) == held.policy


def test_line_of_the_knobs_is_read_by_a_profile() -> None:
    """The start line names block, budget and top-k as specctl's profiles spell knobs, then limits and policy."""
    assert knobs.told(LIMITS, RULED) == (
        "block_size=8, tree_budget=16, topk_cap=4, max_budget=31, max_topk=8, policy=1:31/8,4:7/1"
    )
    assert knobs.told(LIMITS, HELD).endswith(", policy=none")


def test_state_has_each_knob_by_the_name_that_sets_it() -> None:
    """What /server_info tells is flat, and a row is told by the names of its knobs."""
    assert knobs.state(LIMITS, RULED) == {
        "ddtree_budget": 16,
        "ddtree_topk": 4,
        "ddtree_policy": [
            {"from": 1, "ddtree_budget": 31, "ddtree_topk": 8},
            {"from": 4, "ddtree_budget": 7, "ddtree_topk": 1},
        ],
        "ddtree_block_size": 8,
        "ddtree_max_budget": 31,
        "ddtree_max_topk": 8,
    }
    assert knobs.state(LIMITS, HELD)["ddtree_policy"] == []


def test_own_names_are_known() -> None:
    """The plugin answers for its own names and leaves all others to the engine."""
    assert [knobs.is_ours(name) for name in ("ddtree_budget", "ddtree_wrong", "pp_max_micro_batch_size")] == [
        True,
        True,
        False,
    ]


def test_budgets_to_prepare_for_are_read() -> None:
    """Those that a running server is turned to, in the order given."""
    limits, _ = knobs.at_start({"DDTREE_GRAPH_BUDGETS": "8, 16,31", "DDTREE_MAX_BUDGET": "31"}, 8)
    assert limits.graph_budgets == (8, 16, 31)
