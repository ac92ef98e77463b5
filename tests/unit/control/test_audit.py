"""The metric audit: contradictions are found by id, what is unknown is said to be, and truth passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.audit import CHECKS, Audit, audit
from specctl.control.audit_types import AuditInput
from specctl.control.mode import Mode, mode
from specctl.control.sample.engine import (
    Activity,
    Counted,
    DecodeLine,
    DecodeSums,
    EngineCounters,
    EngineLines,
    EngineSample,
    TreeLine,
)
from specctl.control.window import Window

NONE = mode("none")
CHAIN = mode("dflash", {"block_size": 8})
TREE = mode("ddtree", {"block_size": 8, "tree_budget": 16})
LINE = TreeLine(batch=2, tree_budget=16, nodes=16.9, accepted_drafts=1.0, commit=2.0, depth=1.0)
ALL = tuple(check_id for check_id, _ in CHECKS)


def window(running: Mode = TREE, *, accept: float = 2.0, seconds: int = 120, counter: float = 1.0) -> Window:
    """Return samples of two streams, 40 steps a second, with a page each ten seconds that tells `counter` times the truth."""
    made = []
    for at in range(seconds):
        sums = DecodeSums(steps=40.0, requests=80.0, busy_s=0.9, request_busy_s=1.8, tokens=80.0 * accept)
        counted = None
        if at % 10 == 0:
            told = 800.0 * accept * counter
            counted = Counted(
                span_s=10.0, decode_tokens=told, generated_tokens=told + 4, verify_calls=800.0, requests=4.0
            )
        made.append(
            EngineSample(
                at_s=float(at), span_s=1.0, activity=Activity.ACTIVE, running=2, waiting=0, max_running=8,
                mode=running, decoded=sums, counted=counted,
            )
        )  # fmt: skip
    return Window(samples=tuple(made))


def lines(tree: TreeLine | None = LINE, *, accept: float | None = 2.0, since_tree: int = 0) -> EngineLines:
    """Return what the log of a tree said, or of something else."""
    return EngineLines(
        decode_lines=10,
        tree_lines=0 if tree is None else 10,
        last_decode=DecodeLine(running=2, queued=0, accept_length=accept, graph=True),
        last_tree=tree,
        last_is_tree=tree is not None and since_tree < 2,
        since_tree=since_tree,
    )


TRUE = AuditInput(
    mode=TREE,
    window=window(),
    counters=EngineCounters(accept_length=2.0, draft_tokens=17.0),
    lines=lines(),
    has_tree_line=True,
    counts_root=True,
    counts_bonus=True,
    same_start=True,
)


def found(given_: AuditInput) -> list[str]:
    """Return the ids of the findings."""
    return [finding.id for finding in audit(given_).findings]


def test_truth_passes_every_check() -> None:
    """An engine whose figures agree has no finding, and nothing about it is unknown."""
    assert audit(TRUE) == Audit(passed=ALL)


def test_a_chain_and_plain_decoding_pass() -> None:
    """A chain without tree lines, and plain decoding without drafts, contradict nothing."""
    chain = replace(
        TRUE, mode=CHAIN, window=window(CHAIN), lines=lines(None), counters=EngineCounters(draft_tokens=8.0)
    )
    plain = replace(
        TRUE,
        mode=NONE,
        window=window(NONE, accept=1.0),
        lines=lines(None, accept=None),
        counters=EngineCounters(draft_tokens=0.0),
    )
    assert (found(chain), found(plain)) == ([], [])


def test_plain_decoding_by_verify_passes_passes() -> None:
    """Where every mode decodes by verify passes, one without drafts verifies its root alone: one token a step, as many checked."""
    plain = replace(TRUE, mode=NONE, window=window(NONE, accept=1.0), lines=lines(None, accept=1.0))
    rooted = replace(plain, counters=EngineCounters(accept_length=1.0, draft_tokens=1.0))
    assert audit(rooted).findings == ()
    assert found(replace(rooted, counts_root=False)) == ["M014"]
    assert found(replace(plain, counts_root=False, counters=EngineCounters(draft_tokens=0.0))) == []
    assert found(replace(plain, counters=EngineCounters(draft_tokens=2.0))) == ["M014"]


def test_a_straight_tree_is_not_missed_for_its_lines() -> None:
    """A tree of one alternative a depth may print a chain's lines: that it has none of a tree says nothing."""
    straight = mode("ddtree", {"tree_budget": 3, "topk_cap": 1, "block_size": 8})
    given_ = replace(TRUE, mode=straight, window=window(straight), counters=EngineCounters(draft_tokens=4.0))
    assert found(replace(given_, lines=lines(None, since_tree=5))) == []
    assert found(replace(given_, lines=lines(replace(LINE, tree_budget=3, nodes=4.0)))) == []


def test_nothing_known_is_unknown_and_no_finding() -> None:
    """Without any figure no check fails, and none passes either."""
    result = audit(AuditInput(mode=None))
    assert (result.findings, result.passed) == ((), ())
    assert (result.unknown, len(result.why)) == (ALL, len(ALL))


@pytest.mark.parametrize(
    ("changes", "check_id"),
    [
        ({"window": window(accept=8.5)}, "M001"),
        ({"lines": lines(accept=9.0)}, "M001"),
        ({"counters": EngineCounters(accept_length=8.3, draft_tokens=17.0)}, "M001"),
        ({"window": window(accept=0.7)}, "M002"),
        ({"lines": lines(replace(LINE, depth=4.0))}, "M003"),
        ({"lines": lines(replace(LINE, commit=1.0))}, "M004"),
        ({"lines": lines(replace(LINE, accepted_drafts=0.5, commit=2.0))}, "M004"),
        ({"window": window(accept=4.0)}, "M005"),
        ({"window": window(counter=0.5)}, "M006"),
        ({"lines": lines(None, since_tree=0), "mode": CHAIN, "window": window(CHAIN)}, None),
        ({"mode": CHAIN, "window": window(CHAIN)}, "M011"),
        ({"lines": lines(since_tree=5)}, "M011"),
        ({"mode": NONE, "window": window(NONE), "lines": lines(None)}, "M012"),
        (
            {"mode": CHAIN, "window": window(CHAIN, accept=1.0), "lines": lines(None, accept=None)},
            "M012",
        ),
        ({"lines": lines(replace(LINE, tree_budget=7))}, "M013"),
        ({"counters": EngineCounters(draft_tokens=8.0)}, "M014"),
        ({"lines": lines(replace(LINE, nodes=33.0))}, "M015"),
    ],
)
def test_a_contradiction_is_found(changes: dict[str, object], check_id: str | None) -> None:
    """Each contradiction is found under its own id; what contradicts nothing is not."""
    result = found(replace(TRUE, **changes))  # type: ignore[arg-type]  # fields by name, as the table gives them
    assert check_id in result if check_id is not None else "M011" not in result


def test_more_running_than_may_is_found() -> None:
    """Nine running where eight may."""
    samples = TRUE.window.samples
    over = Window(samples=(*samples[:-1], replace(samples[-1], running=9)))
    assert found(replace(TRUE, window=over)) == ["M010"]


def test_more_decoding_than_time_is_found() -> None:
    """Two seconds of decode steps a second, of one rank, cannot be; of two ranks they can."""
    twice = [replace(one, decoded=one.decoded + one.decoded) for one in TRUE.window.samples if one.decoded is not None]
    assert "M008" in found(replace(TRUE, window=Window(samples=tuple(twice))))
    two = tuple(replace(one, ranks=2) for one in twice)
    assert "M008" not in found(replace(TRUE, window=Window(samples=two)))


def test_counters_that_fall_need_a_restart() -> None:
    """Sums that began anew are a contradiction where the unit did not; without knowing the unit, they are not judged."""
    samples = TRUE.window.samples
    fell = Window(samples=(*samples[:60], replace(samples[60], restarted=True, decoded=None), *samples[61:]))
    assert found(replace(TRUE, window=fell)) == ["M009"]
    assert found(replace(TRUE, window=fell, same_start=False)) == []
    assert "M009" in audit(replace(TRUE, window=fell, same_start=None)).unknown


def test_finished_requests_that_tell_another_commit_are_found() -> None:
    """Half the tokens a verify call that steps tell: found, and it blocks nothing, for steps are what decisions read."""
    samples = tuple(
        one if one.counted is None else replace(one, counted=replace(one.counted, verify_calls=1600.0, requests=10.0))
        for one in TRUE.window.samples
    )
    result = audit(replace(TRUE, window=Window(samples=samples)))
    assert [(one.id, one.blocks) for one in result.findings] == [("M007", False)]
    assert result.blocking == ()


def test_a_lying_line_blocks_nothing_and_a_wrong_algo_does() -> None:
    """What only a line says wrong is worth knowing; what decisions are taken from must be right."""
    assert audit(replace(TRUE, lines=lines(replace(LINE, depth=5.0)))).blocking == ()
    wrong = audit(replace(TRUE, mode=CHAIN, window=window(CHAIN)))
    assert [one.id for one in wrong.blocking] == ["M011", "M014"]


def test_a_mode_that_is_new_is_not_judged_by_old_lines() -> None:
    """Right after a live switch, lines and gauges are still those of the mode before: claims are not judged yet."""
    samples = (
        *window(TREE).samples,
        *(replace(one, at_s=120.0 + one.at_s) for one in window(CHAIN, seconds=20).samples),
    )
    result = audit(replace(TRUE, mode=CHAIN, window=Window(samples=samples)))
    assert result.findings == ()
    assert {"M011", "M012", "M014"} <= set(result.unknown)


def test_a_tree_without_a_line_of_its_own_is_not_missed_for_it() -> None:
    """A build whose profile knows no tree line may decode a tree without one."""
    result = found(replace(TRUE, has_tree_line=False, lines=lines(since_tree=5)))
    assert "M011" not in result


def test_the_fields_own_paradox_is_named() -> None:
    """The one-chain tree that logged depth 5 with 2 drafts and a commit of 2: the depth lies, and the bonus is missing."""
    paradox = TreeLine(batch=1, tree_budget=7, nodes=8.0, accepted_drafts=2.0, commit=2.0, depth=5.0)
    one_chain = mode("ddtree", {"tree_budget": 7, "topk_cap": 1, "block_size": 8})
    result = audit(
        replace(
            TRUE,
            mode=one_chain,
            window=window(one_chain, accept=2.3),
            lines=lines(paradox),
            counters=EngineCounters(draft_tokens=8.0),
        )
    )
    assert [one.id for one in result.findings] == ["M003", "M004"]
    assert result.findings[0].reason == "accepted depth 5.00 with 2.00 drafts; on any path depth = drafts"


NUMBER = st.none() | st.floats(0, 1e6)
COUNT = st.none() | st.integers(0, 2000)


@given(
    st.sampled_from([None, NONE, CHAIN, TREE]),
    st.builds(EngineCounters, accept_length=NUMBER, draft_tokens=NUMBER),
    st.none()
    | st.builds(
        EngineLines,
        decode_lines=st.integers(0, 9),
        tree_lines=st.integers(0, 9),
        last_decode=st.none() | st.builds(DecodeLine, accept_length=NUMBER, running=COUNT),
        last_tree=st.none()
        | st.builds(
            TreeLine, batch=COUNT, tree_budget=COUNT, nodes=NUMBER, accepted_drafts=NUMBER, commit=NUMBER, depth=NUMBER
        ),
        last_is_tree=st.none() | st.booleans(),
        since_tree=st.integers(0, 9),
    ),
    st.none() | st.booleans(),
)
def test_every_check_is_answered_once(
    running: Mode | None, counters: EngineCounters, said: EngineLines | None, flag: bool | None
) -> None:
    """Whatever is known, each check is a finding, passed or unknown, and none is two of them."""
    result = audit(
        replace(TRUE, mode=running, counters=counters, lines=said, counts_root=flag, counts_bonus=flag, same_start=flag)
    )
    ids = [*(one.id for one in result.findings), *result.passed, *result.unknown]
    assert sorted(ids) == sorted(ALL)
