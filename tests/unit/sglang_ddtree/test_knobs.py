"""The plugin's knobs: what they default to, what is refused, and which budget holds for how many requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ddtree import knobs
from sglang_ddtree.knobs import KnobError, Knobs, Limits

LIMITS = Limits(block_size=8, max_budget=31, max_topk=8)
HELD = Knobs(budget=16, topk=4)


def test_defaults_leave_room_for_the_chain() -> None:
    """Without a word the tree has 16 nodes of 4 a depth, and can always be turned into linear DFlash."""
    assert knobs.at_start({}, 8) == (Limits(block_size=8, max_budget=16, max_topk=4), HELD)
    limits, held = knobs.at_start({"DDTREE_BUDGET": "3", "DDTREE_TOPK": "2"}, 8)
    assert (limits, held) == (Limits(block_size=8, max_budget=7, max_topk=4), Knobs(budget=3, topk=2))


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"DDTREE_BUDGET": "many"}, "DDTREE_BUDGET=many is no whole number"),
        ({"DDTREE_BUDGET": "-1"}, "DDTREE_BUDGET=-1 is outside 0 to 1024"),
        ({"DDTREE_TOPK": "0"}, "DDTREE_TOPK=0 is outside 1 to 64"),
        ({"DDTREE_BUDGET": "20", "DDTREE_MAX_BUDGET": "10"}, "DDTREE_MAX_BUDGET=10 is outside 20 to 1024"),
        ({"DDTREE_TOPK": "6", "DDTREE_MAX_TOPK": "4"}, "DDTREE_MAX_TOPK=4 is outside 6 to 64"),
        ({"DDTREE_POLICY": "4=8"}, "DDTREE_POLICY: 4=8 is no row like 4:8 (from 4 requests on, a budget of 8)"),
        ({"DDTREE_POLICY": "0:8"}, "a policy's row begins at 0 requests; the least is 1"),
        ({"DDTREE_POLICY": "1:8,1:4"}, "a policy has two rows for one number of requests"),
        ({"DDTREE_POLICY": "1:2000"}, "a policy's budget of 2000 is outside 0 to 1024"),
    ],
)
def test_bad_words_at_the_start_are_named(environ: dict[str, str], message: str) -> None:
    """A variable that cannot be so is refused with its name, its value and what it may be."""
    with pytest.raises(KnobError) as refused:
        knobs.at_start(environ, 8)
    assert str(refused.value) == message


def test_metrics_interval_is_read_and_checked() -> None:
    """The line of metrics comes every 40 steps, or as often as it is asked for."""
    assert (knobs.every({}), knobs.every({"DDTREE_METRICS_EVERY": "5"})) == (40, 5)
    with pytest.raises(KnobError, match="DDTREE_METRICS_EVERY=0 is outside 1 to 1000000"):
        knobs.every({"DDTREE_METRICS_EVERY": "0"})


def test_policy_decides_by_requests() -> None:
    """The last row that fits decides; below the first row, the first; the largest row counts for the limits."""
    limits, held = knobs.at_start({"DDTREE_POLICY": "8:0, 2:31,4:8"}, 8)
    assert limits.max_budget == 31
    assert held.policy == ((2, 31), (4, 8), (8, 0))
    assert [held.at(requests) for requests in (1, 2, 3, 4, 7, 8, 100)] == [31, 31, 31, 8, 8, 0, 0]
    assert HELD.at(100) == 16


def test_width_holds_the_block_too() -> None:
    """A pass is as wide as the tree with its root, and never narrower than the draft's block."""
    assert (LIMITS.width, Limits(block_size=8, max_budget=3, max_topk=1).width) == (32, 8)


def test_live_changes_take_what_they_name() -> None:
    """A budget ends a policy, rows replace the whole table, and top-k touches neither."""
    ruled = Knobs(budget=16, topk=4, policy=((1, 31),))
    assert knobs.changed(ruled, LIMITS, {"ddtree_budget": 7.0}) == Knobs(budget=7, topk=4)
    assert knobs.changed(ruled, LIMITS, {"ddtree_topk": 1}) == Knobs(budget=16, topk=1, policy=((1, 31),))
    rows = {"ddtree_budget_from_8": 0, "ddtree_budget_from_1": 31.0}
    assert knobs.changed(HELD, LIMITS, rows) == Knobs(budget=16, topk=4, policy=((1, 31), (8, 0)))


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
        ({"ddtree_depth": 2}, "ddtree_depth is no knob: ddtree_budget, ddtree_topk and ddtree_budget_from_N are"),
        (
            {"ddtree_topk": 2, "dspark_x": 1},
            "dspark_x is no knob: ddtree_budget, ddtree_topk and ddtree_budget_from_N are",
        ),
        (
            {"ddtree_budget_from_x": 2},
            "ddtree_budget_from_x is no knob: ddtree_budget, ddtree_topk and ddtree_budget_from_N are",
        ),
        ({"ddtree_budget_from_0": 2}, "a policy's row begins at 0 requests; the least is 1"),
        (
            {"ddtree_budget": 2, "ddtree_budget_from_1": 2},
            "ddtree_budget and a policy's rows were given at once: a budget ends the policy",
        ),
    ],
)
def test_bad_live_changes_are_named(wanted: dict[str, float], message: str) -> None:
    """A change that cannot be is refused whole, in words for the log."""
    with pytest.raises(KnobError) as refused:
        knobs.changed(HELD, LIMITS, wanted)
    assert str(refused.value) == message


names = st.one_of(st.text(max_size=12), st.sampled_from(["ddtree_budget", "ddtree_topk", "ddtree_budget_from_3"]))


@given(wanted=st.dictionaries(names, st.one_of(st.integers(-5, 50), st.floats()), max_size=4))
def test_nothing_gets_past_the_limits(wanted: dict[str, float]) -> None:
    """Whatever is asked for, the knobs either stay within the limits or are refused by a KnobError, never by another error."""
    try:
        held = knobs.changed(HELD, LIMITS, wanted)
    except KnobError:
        return
    assert 1 <= held.topk <= LIMITS.max_topk
    assert all(0 <= held.at(requests) <= LIMITS.max_budget for requests in (1, 3, 64))


def test_line_of_the_knobs_is_read_by_a_profile() -> None:
    """The start line names block, budget and top-k as specctl's profiles spell knobs."""
    assert knobs.told(LIMITS, Knobs(budget=3, topk=2, policy=((1, 31), (4, 8)))) == (
        "block_size=8, tree_budget=3, topk_cap=2, max_budget=31, max_topk=8, policy=1:31,4:8"
    )


def test_own_names_are_known() -> None:
    """The plugin answers for its own names and leaves all others to the engine."""
    assert [knobs.is_ours(name) for name in ("ddtree_budget", "ddtree_wrong", "pp_max_micro_batch_size")] == [
        True,
        True,
        False,
    ]
