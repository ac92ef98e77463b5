"""Rules on trees: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept, findings

CASES = (
    Case(
        rule="W020",
        broken=Made(of="fork", algo="ddtree", options={"--page-size": 16}),
        says="--page-size is 16 with a tree",
        kept=Made(of="fork", options={"--page-size": 16}),
        key="options.--page-size",
    ),
    Case(
        rule="W021",
        broken=Made(of="fork", algo="ddtree", knobs={"tree_budget": 32, "topk_cap": 8}),
        says="from 4 requests on a step verifies 128 tokens or more (4 × (1 + 32)), and 8 may run",
        kept=Made(of="fork", algo="ddtree", options={"--max-running-requests": 64}),
        key="knobs.ddtree.tree_budget",
    ),
    Case(
        rule="W021",
        broken=Made(
            of="fork", algo="ddtree", knobs={"tree_budget": 127, "topk_cap": 8}, options={"--max-running-requests": 1}
        ),
        says="from one request on",
        kept=Made(of="fork", algo="ddtree", knobs={"tree_budget": 14, "topk_cap": 8}),
    ),
    Case(
        rule="W021",
        broken=Made(
            of="pr", algo="ddtree", knobs={"tree_budget": 16}, options={"--max-running-requests": None}, hardware=None
        ),
        says="from 31 requests on a step verifies 512 tokens or more (31 × (1 + 16)), and 48 may run",
        kept=Made(of="lab", algo="ddtree", knobs={"tree_budget": 32}, options={"--max-running-requests": None}),
        also=("W011",),
    ),
    Case(
        rule="W021",
        broken=Made(of="fork", algo="ddtree", knobs={"tree_budget": 16}, hardware={"verify_cliff_tokens": 100}),
        says="from 6 requests on a step verifies 100 tokens or more",
        kept=Made(of="fork", algo="ddtree", knobs={"tree_budget": 32}, hardware={"verify_cliff_tokens": 1000}),
        also=(),
    ),
    Case(
        rule="W022",
        broken=Made(of="fork", algo="ddtree", knobs={"tree_budget": 9, "topk_cap": 1}),
        says="tree_budget is 9, and 7 depths of 1 alternatives hold 7 nodes",
        kept=Made(of="fork", algo="ddtree", knobs={"tree_budget": 7, "topk_cap": 1}),
    ),
    Case(
        rule="W023",
        broken=Made(env={"SGLANG_DFLASH_TREE_VERIFY": "1"}),
        says="SGLANG_DFLASH_TREE_VERIFY makes a tree, and the overlap scheduler is on",
        kept=Made(env={"SGLANG_DFLASH_TREE_VERIFY": "1"}, options={"--disable-overlap-schedule": True}),
        key="env.SGLANG_DFLASH_TREE_VERIFY",
    ),
    Case(
        rule="W024",
        broken=Made(of="pr", algo="ddtree", options={"--page-size": 64}),
        says="--page-size is 64 in the inventory and 1 with ddtree",
        kept=Made(of="pr", algo="ddtree", options={"--page-size": "1"}),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_found(case: Case) -> None:
    """The launch that breaks the rule is said to, in words that name what breaks it, and nothing else is said of it."""
    check_broken(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_kept_rule_is_silent(case: Case) -> None:
    """A launch like it that keeps the rule is not blamed for it."""
    check_kept(case)


@pytest.mark.parametrize(
    ("budget", "topk", "block", "broken"),
    [(254, 2, 8, False), (255, 2, 8, True), (7, 1, 8, False), (1024, 64, 64, False)],
)
def test_the_room_of_a_tree_is_counted(*, budget: int, topk: int, block: int, broken: bool) -> None:
    """Depths of k alternatives hold k + k² + … nodes: a budget of exactly that is fine, one more is not."""
    made = Made(
        of="fork",
        algo="ddtree",
        knobs={"tree_budget": budget, "topk_cap": topk, "block_size": block},
        draft={"block_size": block},
        hardware={"verify_cliff_tokens": 1_000_000},
    )
    assert [one.rule.id for one in findings(made)] == (["W022"] if broken else [])


def test_the_remedy_of_a_cliff_keeps_under_it() -> None:
    """The budget that is offered keeps a step of all requests under the cliff, and one node more would not."""
    made = Made(of="fork", algo="ddtree", knobs={"tree_budget": 32, "topk_cap": 8})
    (one,) = findings(made)
    assert one.remedy == "set tree_budget to 14 or less, or keep the tree for times with fewer than 4 requests"
    assert 8 * (1 + 14) < 128 <= 8 * (1 + 15)
