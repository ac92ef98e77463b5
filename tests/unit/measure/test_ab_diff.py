"""What two arms differ in: the one thing that was named, and everything else with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specctl.fleet.types import Origin, Server
from specctl.measure.ab_diff import Contrast, Side, compare
from tests.fakes import HOST, PROFILE, SERVER

PLAIN = replace(PROFILE, algos={**PROFILE.algos, "ddtree": replace(PROFILE.algos["ddtree"], implies={}, env={})})
BUILD: Mapping[str, str] = {"sglang": "sha256:1"}


def side(algo: str, *, server: Server = SERVER, build: Mapping[str, str] = BUILD) -> Side:
    """Return the side of a server in an algo."""
    return Side.of(HOST, replace(server, algo=algo), build)


def between(a: Side, b: Side) -> Contrast:
    """Return the contrast of two sides."""
    return compare(a, b)


def test_an_algo_with_its_own_flags_draft_and_knobs_is_one_thing() -> None:
    """Where the profile implies nothing, chain against tree is the algorithm alone, whatever flags and variables spell it."""
    plain = replace(SERVER, profile=PLAIN)
    found = between(side("dflash", server=plain), side("ddtree", server=plain))
    assert found == Contrast(
        named="speculative algorithm (dflash block_size 16 → ddtree tree_budget 7 topk_cap 2)", beside=()
    )


def test_what_the_profile_implies_is_not() -> None:
    """Overlap off, a page size and a variable that come with the tree are listed, with the engine profile that brings them."""
    found = between(side("dflash"), side("ddtree"))
    assert [str(each) for each in found.beside] == [
        "--page-size: 64 → 1 (ddtree implies it in engine profile test-engine)",
        "--disable-overlap-schedule: absent → set (ddtree implies it in engine profile test-engine)",
        "TREE: absent → 1 (engine profile test-engine sets it for ddtree)",
    ]


def test_another_build_is_not() -> None:
    """An engine whose packages differ is another engine, and so is another profile."""
    found = between(side("dflash"), side("dflash", build={"sglang": "sha256:2"}))
    assert found.named == "sglang (sha256:1 → sha256:2)"
    other = replace(SERVER, profile=replace(PLAIN, name="fork"))
    found = between(side("dflash", server=replace(SERVER, profile=PLAIN)), side("ddtree", server=other))
    assert [(each.kind, each.name, each.a, each.b) for each in found.beside] == [
        ("build", "engine profile", "test-engine", "fork")
    ]


def test_one_knob_is_one_thing_and_two_are_two() -> None:
    """Of one algo, the first knob that differs is what was named; a second one is beside it."""
    tree = replace(SERVER, profile=PLAIN)
    wide = replace(tree, knobs={"ddtree": {"tree_budget": 16, "topk_cap": 2}})
    wider = replace(tree, knobs={"ddtree": {"tree_budget": 16, "topk_cap": 8}})
    assert between(side("ddtree", server=tree), side("ddtree", server=wide)) == Contrast(named="tree_budget (7 → 16)")
    found = between(side("ddtree", server=tree), side("ddtree", server=wider))
    assert (found.named, [each.name for each in found.beside]) == ("tree_budget (7 → 16)", ["topk_cap"])


def test_a_knob_that_both_algos_have_must_be_the_same() -> None:
    """A chain of block 16 against a tree of block 8 differs in two things."""
    algos = {**PLAIN.algos, "ddtree": replace(PLAIN.algos["ddtree"], knobs={"block_size": "--block-size"})}
    server = replace(SERVER, profile=replace(PLAIN, algos=algos), knobs={"ddtree": {"block_size": 8}})
    found = between(side("dflash", server=server), side("ddtree", server=server))
    assert [(each.name, each.a, each.b) for each in found.beside] == [("block_size", "16", "8")]


def test_an_option_or_a_variable_of_one_arm_tells_its_origin() -> None:
    """A flag and a variable that the command line gives to one arm are told from there."""
    tree = replace(SERVER, profile=PLAIN)
    given = replace(
        tree,
        options={**SERVER.options, "--page-size": 1},
        env={"NCCL_ALGO": "Tree"},
        provenance={"options.--page-size": Origin(layer="command line"), "env.NCCL_ALGO": Origin(layer="command line")},
    )
    found = between(side("dflash", server=tree), side("ddtree", server=given))
    assert [(each.kind, each.name, each.origin) for each in found.beside] == [
        ("flag", "--page-size", "command line"),
        ("env", "NCCL_ALGO", "command line"),
    ]


def test_the_same_twice_is_an_aa_trial() -> None:
    """Two arms that are launched alike differ in nothing."""
    assert between(side("dflash"), side("dflash")) == Contrast(named=None)
