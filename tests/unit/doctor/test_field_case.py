"""The field's own case (docs/doctor.md), diagnosed from its figures alone; and the same arithmetic on any other figures."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.doctor import basis, figures, lines
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.types import Report
from tests.unit.doctor.worlds import READER

CHAIN, TREE = "dflash:block_size=8", "ddtree:block_size=8,tree_budget=7,topk_cap=1"
LINE = (
    "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts={drafts:.2f} avg_commit_len={commit:.2f} "
    "avg_accepted_depth={depth:.2f}"
)


def case(
    *,
    tree: float = 109.7,
    plain: float | None = 98.0,
    chain: tuple[float, float] = (110.4, 2.30),
    drafts: float = 2.0,
    commit: float = 2.0,
    depth: float = 5.0,
) -> Evidence:
    """Return what the field knew: three throughputs at one stream, the chain's accept length, one line of the tree."""
    speeds = [{"mode": CHAIN, "tokens_s": chain[0], "accept_length": chain[1]}, {"mode": TREE, "tokens_s": tree}]
    if plain is not None:
        speeds.append({"mode": "none", "tokens_s": plain})
    found = figures.parse({"mode": TREE, "concurrency": 1, "speeds": speeds}).evidence
    told = lines.read([LINE.format(drafts=drafts, commit=commit, depth=depth)], READER)
    return Evidence(**{name: getattr(found, name) for name in found.__dataclass_fields__ if name != "log"}, log=told)


def so_far(report: Report, check_id: str) -> str:
    """Return how far the evidence goes on a check that it does not decide."""
    (found,) = [one for one in report.unknown if one.id == check_id]
    assert found.partly
    return found.reason


def test_the_field_is_told_what_is_wrong() -> None:
    """Depth is wrong; commit = drafts: the bonus is uncounted or cut; nothing else is found, and tokens are not said to be lost."""
    report = judge(case())
    assert [one.id for one in report.findings] == ["M003", "M004"]
    depth, commit = report.findings
    assert "accepted depth 5.00 with 2.00 drafts; on any path depth = drafts" in depth.message
    assert depth.effect.startswith("none on tokens")
    assert "commit = drafts means that the bonus token is uncounted, or cut" in commit.message


def test_the_field_is_told_how_far_throughput_goes() -> None:
    """At linear's 20.8 ms, 2.04 base steps, 109.7 tok/s are about 2.285 a step: 2.00 is 12.5 % low, if step times are equal."""
    words = so_far(judge(case()), "M021")
    assert words == (
        "at dflash's step time (20.8 ms, 2.04 base steps) 109.7 tok/s are about 2.285 tokens a step: "
        "the tree line's commit 2.00 is 12.5 % low if step times are equal"
    )


def test_the_field_is_told_what_decides() -> None:
    """Verify steps a second are to be measured, for the commit, for the loss and for the early end."""
    report = judge(case())
    decides = {one.id: one.decide for one in report.unknown}
    assert {decides[name] for name in ("M021", "M026", "M027")} == {
        "measure verify steps a second beside tokens: specctl doctor --host H --live"
    }


def test_the_decisive_experiment_passes() -> None:
    """A tree of one chain and the chain, one flag apart, are as fast: what the field concluded."""
    (passed,) = [one for one in judge(case()).passed if one.id == "M025"]
    assert "109.7 and 110.4 tok/s (-0.6 %)" in passed.note


@pytest.mark.parametrize(("steps_s", "ids"), [(48.0, ["M003", "M004", "M021"]), (54.85, ["M003", "M004", "M026"])])
def test_verify_steps_decide(steps_s: float, ids: list[str]) -> None:
    """With verify steps counted the same line is decided: the commit lies at 48 steps/s, drafts are lost at 55."""
    plain = {
        "mode": TREE,
        "concurrency": 1,
        "speeds": [
            {"mode": CHAIN, "tokens_s": 110.4, "accept_length": 2.3},
            {"mode": TREE, "tokens_s": 109.7, "steps_s": steps_s},
        ],
    }
    found = figures.parse(plain).evidence
    drafts = 1.29 if ids[-1] == "M021" else 2.0
    told = lines.read([LINE.format(drafts=drafts, commit=drafts, depth=5.0)], READER)
    evidence = Evidence(
        **{name: getattr(found, name) for name in found.__dataclass_fields__ if name != "log"}, log=told
    )
    assert sorted(one.id for one in judge(evidence).findings) == ids


@given(
    tree=st.floats(20, 5000),
    plain=st.floats(20, 5000),
    chain=st.floats(20, 5000),
    length=st.floats(1.0, 8.0),
    drafts=st.floats(0.0, 7.0),
)
def test_the_arithmetic_is_worked_out(tree: float, plain: float, chain: float, length: float, drafts: float) -> None:
    """Whatever the figures, step time, base steps, tokens a step and how far the commit is off follow from them."""
    report = judge(case(tree=tree, plain=plain, chain=(chain, length), drafts=drafts, commit=drafts, depth=drafts))
    words = so_far(report, "M021")
    told = re.search(
        r"\(([\d.]+) ms, ([\d.]+) base steps\) ([\d.]+) tok/s are about ([\d.]+) tokens a step: (.*)$", words
    )
    assert told is not None, words
    step_s = length / chain
    assert float(told[1]) == pytest.approx(step_s * 1000, abs=0.051)
    assert float(told[2]) == pytest.approx(step_s * plain, abs=0.0051)
    assert float(told[4]) == pytest.approx(tree * step_s, abs=0.00051)
    said = round(drafts, 2)
    apart = re.search(r"is ([\d.]+) % (low|high) if step times are equal", told[5])
    if apart is None:
        assert abs(said - tree * step_s) <= basis.NOISE_RATIO * tree * step_s * 1.001 + 0.01
    else:
        assert (apart[2] == "low") == (said < tree * step_s)
        assert float(apart[1]) == pytest.approx(abs(said - tree * step_s) / (tree * step_s) * 100, abs=0.051)


@given(st.floats(20, 5000), st.floats(20, 5000), st.floats(1.0, 8.0))
def test_a_wider_tree_commits_at_least_that(tree: float, chain: float, length: float) -> None:
    """A mode that verifies more tokens a step takes no less time for it: the estimate is then a lower bound, and said to be one."""
    wide = "ddtree:block_size=8,tree_budget=32"
    speeds = [
        {"mode": CHAIN, "tokens_s": chain, "accept_length": length},
        {"mode": wide, "tokens_s": tree, "accept_length": 2.0},
    ]
    found = figures.parse({"mode": wide, "concurrency": 1, "speeds": speeds}).evidence
    assert "at least" in so_far(judge(found), "M021")


@given(st.floats(0.02, 7.0), st.floats(0.05, 5.0))
def test_only_a_commit_that_equals_the_drafts_is_called_uncounted(drafts: float, more: float) -> None:
    """The words on the bonus come with commit = drafts, and with no other commit."""
    equal = [
        one.message for one in judge(case(drafts=drafts, commit=drafts, depth=drafts)).findings if one.id == "M004"
    ]
    assert [message for message in equal if "uncounted, or cut" not in message] == []
    other = [
        one.message
        for one in judge(case(drafts=drafts, commit=drafts + more, depth=drafts)).findings
        if one.id == "M004"
    ]
    assert [message for message in other if "uncounted" in message] == []


def test_without_plain_decoding_base_steps_are_not_told() -> None:
    """A figure that was not given is left out, not guessed."""
    words = so_far(judge(case(plain=None)), "M021")
    assert "(20.8 ms)" in words
    assert "base steps" not in words
