"""The arms of an experiment over the inventory: one difference, a refusal that says the others, and a third arm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.errors import UsageError
from specctl.fleet.overrides import Overrides
from specctl.fleet.types import Host, Server
from specctl.measure.ab_trial import Ask
from specctl.ops import ab_arms
from tests.fakes import HOST, PROFILE, SERVER

IMPLYING = replace(SERVER, algo="dflash")
PLAIN_PROFILE = replace(
    PROFILE, algos={**PROFILE.algos, "ddtree": replace(PROFILE.algos["ddtree"], implies={}, env={})}
)
PLAIN = replace(SERVER, profile=PLAIN_PROFILE)
ASK = Ask(a="dflash", b="ddtree:tree_budget=7,topk_cap=2")


def pair(server: Server, b: str = "ddtree") -> tuple[Server, Server]:
    """Return the chain and another mode of a server."""
    return replace(server, algo="dflash"), replace(server, algo=b)


def test_modes_become_overrides_of_the_inventory() -> None:
    """Each arm is the inventory's server under the mode that was spelled, B under its own options and variables too."""
    asked: list[Overrides] = []

    def choose(over: Overrides) -> tuple[Host, Server]:
        asked.append(over)
        return HOST, SERVER

    ask = replace(ASK, options_b=("page-size=1", "trust", "mem=0.8", "name=x"), env_b=("NCCL_ALGO=Ring",))
    ab_arms.servers_of(ask, choose)
    assert asked == [
        Overrides(algo="dflash"),
        Overrides(
            algo="ddtree",
            knobs={"tree_budget": 7, "topk_cap": 2},
            options={"page-size": 1, "trust": True, "mem": 0.8, "name": "x"},
            env={"NCCL_ALGO": "Ring"},
        ),
    ]


@pytest.mark.parametrize("text", ["eagle", "ddtree:tree_budget=x", "ddtree:block=8", "dflash:block_size=1", ""])
def test_a_mode_that_cannot_be_meant_is_refused(text: str) -> None:
    """An unknown algo, knob or number is a fault of the command line, named with its option."""
    with pytest.raises(UsageError, match="--b"):
        ab_arms.read_mode(text, "--b")


@pytest.mark.parametrize("text", ["=1", "NAME", "=x"])
def test_a_variable_without_name_or_value_is_refused(text: str) -> None:
    """A variable has both."""
    with pytest.raises(UsageError, match="NAME=VALUE"):
        ab_arms.read_variables([text])


def test_one_difference_goes_on_with_one_release() -> None:
    """Chain and tree of one server are algos of one release: each arm has the knobs of both."""
    found = ab_arms.resolve(HOST, pair(PLAIN), ASK, {})
    assert found.contrast.beside == ()
    assert found.pairs == ((0, 1),)
    assert [arm.mode for arm in found.arms] == ["dflash:block_size=16", "ddtree:topk_cap=2,tree_budget=7"]
    assert (
        found.servers[0].knobs == found.servers[1].knobs == {"dflash": {}, "ddtree": {"tree_budget": 7, "topk_cap": 2}}
    )


def test_two_budgets_are_two_releases() -> None:
    """One algo with two knobs cannot be of one release, and keeps its own."""
    wide = replace(PLAIN, algo="ddtree", knobs={"ddtree": {"tree_budget": 16, "topk_cap": 2}})
    found = ab_arms.resolve(HOST, (replace(PLAIN, algo="ddtree"), wide), replace(ASK, a="ddtree"), {})
    assert found.contrast.named == "tree_budget (7 → 16)"
    assert [server.knobs["ddtree"]["tree_budget"] for server in found.servers] == [7, 16]


def test_more_differences_are_refused_with_what_to_do() -> None:
    """All that differs beside is told with its origin, and the third arm is offered."""
    with pytest.raises(UsageError) as refused:
        ab_arms.resolve(HOST, pair(IMPLYING), ASK, {})
    assert "and in 3 more things: --page-size: 64 → 1 (ddtree implies it" in refused.value.message
    assert "TREE: absent → 1" in refused.value.message
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("--third-arm adds A with these flags")
    assert "--confounded" in refused.value.hint


def test_confounded_goes_on_and_keeps_the_list() -> None:
    """Who insists gets the experiment, and the report what else differed."""
    found = ab_arms.resolve(HOST, pair(IMPLYING), replace(ASK, confounded=True), {})
    assert [each.name for each in found.contrast.beside] == ["--page-size", "--disable-overlap-schedule", "TREE"]


def test_the_third_arm_tells_the_algorithm_from_its_flags() -> None:
    """C is A with what the tree implies: C against B differs in the algorithm alone, A against C in the flags."""
    found = ab_arms.resolve(HOST, pair(IMPLYING), replace(ASK, third_arm=True), {})
    chain = found.arms[2]
    assert (chain.letter, chain.mode, chain.note) == ("C", "dflash:block_size=16", "A with what ddtree implies")
    assert "--disable-overlap-schedule" in chain.words
    assert dict(chain.env)["TREE"] == "1"
    assert found.pairs == ((2, 1), (0, 2), (0, 1))


def test_a_third_arm_without_use_is_refused() -> None:
    """Where the tree implies nothing there is nothing to tell apart."""
    with pytest.raises(UsageError, match="implies nothing"):
        ab_arms.resolve(HOST, pair(PLAIN), replace(ASK, third_arm=True), {})
