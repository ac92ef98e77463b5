"""Truth raises nothing whatever the algo, knobs and conventions; each planted contradiction is named by its id."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.mode import Mode, mode
from specctl.doctor.catalogue import by_id
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from tests.examples import examples
from tests.unit.doctor.worlds import INTERVAL, Truth, World, without


@st.composite
def modes(draw: st.DrawFn) -> Mode:
    """Draw an algo with knobs, each of those that it has."""
    algo = draw(st.sampled_from(sorted(ALGOS)))
    most = {"block_size": 16, "tree_budget": 64, "topk_cap": 8}
    knobs = {one.name: draw(st.integers(one.low, min(one.high, most[one.name]))) for one in ALGOS[algo].knobs}
    return mode(algo, knobs)


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """Draw a healthy server: one that prints as it decodes, or one of verify passes, whose tree's lines come when they come."""
    passes = draw(st.booleans())
    return Truth(
        seed=draw(st.integers(0, 2**31)),
        mode=draw(modes()),
        batch=draw(st.integers(1, 4)),
        counts_root=draw(st.booleans()),
        counts_bonus=draw(st.booleans()),
        drafted=draw(st.floats(0.05, 0.95)),
        requests=draw(st.integers(25, 40)),
        passes=passes,
        widest=draw(st.none() | st.integers(64, 128)) if passes else None,
        late=draw(st.integers(0, INTERVAL - 1)) if passes else 0,
    )


@settings(max_examples=examples(50), deadline=None)
@given(truths())
def test_a_healthy_server_raises_nothing(truth: Truth) -> None:
    """No check finds anything in figures that were counted from one truth, and most of them pass."""
    report = judge(World.of(truth).evidence())
    assert [(one.id, one.message) for one in report.findings] == []
    if truth.shape is not Shape.NONE:
        assert {"M001", "M002", "M008", "M009", "M010", "M017", "M021", "M026"} <= {one.id for one in report.passed}


@settings(max_examples=examples(20), deadline=None)
@given(
    truths(),
    st.sets(st.sampled_from(["log", "observations", "served", "served_log", "started_s", "mode", "counts_bonus"])),
)
def test_less_evidence_is_unknown_and_never_a_finding(truth: Truth, gone: set[str]) -> None:
    """Whatever nobody looked at, no check makes a finding of what is left."""
    report = judge(without(World.of(truth).evidence(), *gone))
    assert [(one.id, one.message) for one in report.findings] == []


def test_nothing_known_is_nothing_found() -> None:
    """Without any evidence no check passes and none finds."""
    report = judge(Evidence())
    assert (report.findings, report.passed) == ((), ())
    assert {one.id for one in report.unknown} <= set(by_id())


def test_unknown_says_what_would_decide_it() -> None:
    """Each check that the evidence does not decide has a reason and a way out."""
    for one in judge(Evidence()).unknown:
        assert one.reason, one.id
        assert one.decide, one.id


TREE = Truth()
CHAIN = Truth(mode=mode("dflash", {"block_size": 8}))


@pytest.mark.parametrize("truth", [TREE, CHAIN])
def test_ids_are_named_for_their_host(truth: Truth) -> None:
    """Commands in findings and unknowns name the host that they are of."""
    evidence = replace(World.of(truth).evidence(), host="ct200", served=())
    report = judge(evidence)
    said = [one.decide for one in report.unknown] + [one.remedy for one in report.findings]
    assert not [words for words in said if "--host H" in words]
    assert any("--host ct200" in words for words in said)
