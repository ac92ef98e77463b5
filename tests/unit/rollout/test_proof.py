"""What proves an algo, what only claims it and what refutes it."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from specctl.engines.types import AlgoProfile, Evidence, EvidenceKind
from specctl.rollout.proof import Claimed, Proven, Refuted, judge
from specctl.rollout.smoke import SmokeResult
from tests.unit.rollout.replay import load

INIT = Evidence(
    kind=EvidenceKind.LOG, during="start", pattern=r"Initialized DFLASH draft runner\..*block_size=(?P<block_size>\d+)"
)
TREE = Evidence(kind=EvidenceKind.LOG, pattern=r"DDTREE metrics: bs=\d+ budget=(?P<tree_budget>\d+)")
NO_TREE = replace(TREE, absent=True)
STEPS = Evidence(kind=EvidenceKind.META, pattern="spec_verify_ct")
DFLASH = AlgoProfile(algo="dflash", live_proof=(INIT, STEPS, NO_TREE))
DDTREE = AlgoProfile(algo="ddtree", live_proof=(TREE, STEPS))
NONE = AlgoProfile(algo="none", live_proof=(replace(STEPS, absent=True),))
SMOKE = SmokeResult(
    requests=4,
    completion_tokens=512,
    verify_steps=220,
    accept_length=2.31,
    meta={"spec_verify_ct": 220.0, "completion_tokens": 512.0},
)
PLAIN = SmokeResult(requests=1, completion_tokens=128, meta={"completion_tokens": 128.0})
# The line of the field's deployment, and the same with another budget.
TREE_LINE = (
    "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=2.00 "
    "avg_commit_len=2.00 avg_accepted_depth=5.00"
)
KNOBS = {"block_size": 8, "tree_budget": 7, "topk_cap": 1}


def test_a_recorded_dflash_start_is_proven() -> None:
    """The real engine's own init line with the knob's value, and verify steps, prove the chain."""
    lines = [line for _, line in load("spec-dflash").lines]
    proof = judge(DFLASH, {"block_size": 8}, lines, [], SMOKE)
    assert isinstance(proof, Proven)
    assert proof.evidence[0] == "220 verify steps, accept 2.31"
    assert proof.evidence[1] == 'line "Initialized DFLASH draft runner.…" with block_size 8'


def test_a_recorded_knob_that_differs_refutes() -> None:
    """The start that ran with block size 4 is refuted for one that asked 8, both values named."""
    lines = [line for _, line in load("failed-dflash/block-size-override-4").lines]
    proof = judge(DFLASH, {"block_size": 8}, lines, [], SMOKE)
    assert isinstance(proof, Refuted)
    assert proof.reasons[0].startswith("block_size is 4, asked for was 8")


def test_an_echoed_argument_proves_nothing() -> None:
    """A start without speculation that echoes the flags shows nothing of a tree: claimed, with what is missing."""
    lines = ["server_args={'speculative_algorithm': 'DDTREE', 'speculative_num_draft_tokens': 8}"]
    proof = judge(DDTREE, KNOBS, lines, [], SMOKE)
    assert isinstance(proof, Claimed)
    assert proof.missing == ('no line "DDTREE metrics: bs=…" since the smoke test began',)


def test_the_tree_line_proves_the_tree() -> None:
    """The line printed during the smoke test, with the budget asked for, is the proof."""
    proof = judge(DDTREE, KNOBS, [TREE_LINE], [TREE_LINE, TREE_LINE], SMOKE)
    assert proof == Proven(
        evidence=(
            "220 verify steps, accept 2.31",
            'line "DDTREE metrics: bs=…" with tree_budget 7',
            "spec_verify_ct 220",
        )
    )


def test_a_tree_line_from_before_the_smoke_test_does_not_count() -> None:
    """What was printed before the smoke test belongs to somebody else's run."""
    assert isinstance(judge(DDTREE, KNOBS, [TREE_LINE], [], SMOKE), Claimed)


def test_another_budget_refutes_and_is_noted() -> None:
    """A tree of another budget is not what was asked for; the note names it too."""
    line = TREE_LINE.replace("budget=7", "budget=16")
    proof = judge(DDTREE, KNOBS, [line], [line], SMOKE)
    assert isinstance(proof, Refuted)
    assert proof.notes == ("the tree line says budget 16, asked for was 7",)


def test_every_line_of_the_smoke_test_must_agree() -> None:
    """A budget that was wrong in the middle of the smoke test is not made right by the last line."""
    lines = [TREE_LINE.replace("budget=7", "budget=16"), TREE_LINE]
    assert isinstance(judge(DDTREE, KNOBS, lines, lines, SMOKE), Refuted)


def test_a_start_lines_last_word_counts() -> None:
    """A live change prints the init line again: what it says last is what runs."""
    line = "Initialized DFLASH draft runner. model=x, block_size=4"
    assert isinstance(judge(DFLASH, {"block_size": 8}, [line, line.replace("4", "8")], [], SMOKE), Proven)


def test_a_chain_that_prints_tree_lines_is_refuted() -> None:
    """Evidence that must be absent and is not speaks against the algo."""
    lines = [line for _, line in load("spec-dflash").lines]
    assert isinstance(judge(DFLASH, {"block_size": 8}, lines, [TREE_LINE], SMOKE), Refuted)


def test_none_is_proven_by_the_absence_of_verify_steps() -> None:
    """Without speculation a generation without verify steps is the proof; with them it is refuted."""
    assert judge(NONE, {}, [], [], PLAIN) == Proven(evidence=("128 tokens generated", "no spec_verify_ct"))
    assert isinstance(judge(NONE, {}, [], [], SMOKE), Refuted)


def test_too_few_verify_steps_prove_nothing() -> None:
    """63 steps are one too few."""
    few = replace(SMOKE, verify_steps=63)
    proof = judge(DDTREE, KNOBS, [], [TREE_LINE], few)
    assert isinstance(proof, Claimed)
    assert proof.missing == ("63 of 64 verify steps were seen",)


def test_a_failed_generation_refutes() -> None:
    """An engine that does not generate is not healthy, whatever its log says."""
    broken = replace(SMOKE, text_ok=False, failures=("status 503",))
    assert judge(DDTREE, KNOBS, [], [TREE_LINE], broken) == Refuted(
        reasons=("the smoke generation failed: status 503",)
    )


def test_a_profile_without_proof_can_only_claim() -> None:
    """Where the profile names no evidence nothing is ever proven."""
    proof = judge(AlgoProfile(algo="dflash"), {"block_size": 8}, [], [], SMOKE)
    assert isinstance(proof, Claimed)


def test_server_info_proves_misses_or_refutes() -> None:
    """A field of /server_info that equals proves, that differs refutes, that is not there is missing."""
    profile = AlgoProfile(algo="dflash", live_proof=(Evidence(kind=EvidenceKind.INFO, pattern="a.b", equals="7"),))
    assert isinstance(judge(profile, {}, [], [], SMOKE, {"a": {"b": 7}}), Proven)
    assert isinstance(judge(profile, {}, [], [], SMOKE, {"a": {"b": 8}}), Refuted)
    assert isinstance(judge(profile, {}, [], [], SMOKE, {"a": 1}), Claimed)
    unread = judge(profile, {}, [], [], SMOKE, None)
    assert isinstance(unread, Claimed)
    assert unread.missing == ("/server_info was not read for a.b",)


def test_an_impossible_accept_length_is_noted() -> None:
    """More tokens a step than block and budget allow means that the engine counts otherwise, and the proof says so."""
    proof = judge(
        DDTREE,
        {"block_size": 8, "tree_budget": 3},
        [],
        [TREE_LINE.replace("budget=7", "budget=3")],
        replace(SMOKE, accept_length=5.2),
    )
    assert isinstance(proof, Proven)
    assert proof.notes == (
        "the tree line counts 8 nodes, over the budget of 3 and its root",
        "accept length 5.20 is over 4, the most that these knobs allow: the engine counts otherwise, or runs other knobs",
    )


@given(st.text(max_size=20), st.lists(st.text(max_size=60), max_size=4))
def test_no_pattern_and_no_line_crash_the_judgement(pattern: str, lines: list[str]) -> None:
    """A profile's pattern may be no regular expression and a line anything: a proof comes out, claimed where it cannot be read."""
    profile = AlgoProfile(algo="ddtree", live_proof=(Evidence(kind=EvidenceKind.LOG, pattern=pattern),))
    proof = judge(profile, KNOBS, lines, lines, SMOKE)
    try:
        re.compile(pattern)
    except re.error:
        assert isinstance(proof, Claimed)
