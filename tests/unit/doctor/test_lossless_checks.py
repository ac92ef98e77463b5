"""What the checks of losslessness answer to probes: each break under its own id, and nothing where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import parse
from specctl.doctor.catalogue import check_sets
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.lossless_types import Answered, Break, DraftPair, History, Probe
from specctl.doctor.replay_types import Kind, ReplayResult, Sums
from specctl.doctor.types import Beside, Clear, Confidence, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, kinds
from tests.unit.doctor.probes import Sizes, probe

TREE = parse("ddtree:block_size=8,tree_budget=16,topk_cap=8")
CHAIN = parse("dflash:block_size=8")
ANSWER = Answered(rid="a", asked=40, tokens=40, verify_calls=10, correct_drafts=32, finish="length")


def pairs(*, moved_same: bool, count: int = 20) -> tuple[DraftPair, ...]:
    """Return draft pairs, those before any move the same."""
    moved = DraftPair(history=History.MOVED, accepted=1, fresh_accepted=2, same=moved_same)
    return (moved,) * count + (DraftPair(history=History.FRESH, accepted=1, fresh_accepted=1, same=True),) * count


def of(given: Probe, mode: str | None = None) -> Evidence:
    """Return evidence of a tree with this probe."""
    return Evidence(mode=TREE if mode is None else parse(mode), probe=given)


def broken(named: Break, **more: object) -> Evidence:
    """Return evidence of a tree with one break."""
    return of(probe(named, **more))  # type: ignore[arg-type]  # the probe's own words


WELL = replace(probe(None), drafts=pairs(moved_same=True), answered=(ANSWER,))
LOST = replace(ANSWER, verify_calls=20, correct_drafts=60)
EARLY = replace(ANSWER, tokens=9, verify_calls=3, correct_drafts=9)
CASES = (
    Case(
        id="L001",
        name="the target itself",
        kind=Hit,
        evidence=broken(Break.TARGET),
        words=("own tokens", "wrong at roots"),
    ),
    Case(
        id="L001",
        name="wrong and not named",
        kind=Hit,
        evidence=broken(Break.MASK, positions_right=None),
        words=("left open", "may be: the tree's mask is wrong", "first: request r, step", "where the target says 1"),
    ),
    Case(id="L001", name="named elsewhere", kind=Beside, evidence=broken(Break.KV)),
    Case(id="L001", name="all right", kind=Clear, evidence=of(WELL), words=("540 tokens are what the target says",)),
    Case(id="L001", name="near-ties", kind=Clear, evidence=broken(Break.MASK, gap=0.1), words=("near-ties aside",)),
    Case(id="L001", name="no probe", kind=Unsure, words=("--live",)),
    Case(id="L001", name="few picks", kind=Unsure, evidence=of(probe(None, Sizes(each=1))), words=("only 9 tokens",)),
    Case(id="L001", name="nothing to compare", kind=Unsure, evidence=of(Probe(silent="no ids")), words=("no ids",)),
    *(
        case
        for check_id, named, words in (
            ("L002", Break.MASK, "with other nodes before them"),
            ("L003", Break.POSITION, "with nothing but ancestors before them"),
            ("L004", Break.KV, "after a path that had to be moved"),
        )
        for case in (
            Case(id=check_id, name="named", kind=Hit, evidence=broken(named), words=(words, "first: request r")),
            Case(id=check_id, name="well", kind=Clear, evidence=of(WELL), words=("tokens where this would show",)),
            Case(
                id=check_id,
                name="hidden",
                kind=Unsure,
                evidence=broken(Break.TARGET),
                words=("other tokens are wrong",),
            ),
            Case(id=check_id, name="no probe", kind=Beside, evidence=Evidence(mode=TREE)),
            Case(id=check_id, name="no trace", kind=Beside, evidence=of(replace(WELL, traced=False))),
            Case(id=check_id, name="no speculation", kind=Beside, evidence=of(WELL, "none")),
        )
    ),
    Case(id="L002", name="a chain", kind=Beside, evidence=of(WELL, "dflash:block_size=8")),
    Case(id="L003", name="a chain", kind=Clear, evidence=of(WELL, "dflash:block_size=8")),
    Case(
        id="L004",
        name="never moved",
        kind=Unsure,
        evidence=of(replace(WELL, picks=tuple(one for one in WELL.picks if one.history is not History.MOVED))),
        words=("no step of the probe",),
    ),
    Case(
        id="L005",
        name="other drafts after a move",
        kind=Hit,
        evidence=of(replace(WELL, drafts=pairs(moved_same=False))),
        words=("20 of 20 steps after a moved path", "1.00 drafts less"),
    ),
    Case(id="L005", name="the same drafts", kind=Clear, evidence=of(WELL), words=("0 of 20",)),
    Case(
        id="L005",
        name="wrong tokens",
        kind=Unsure,
        evidence=broken(Break.KV),
        words=("wrong tokens make wrong drafts",),
    ),
    Case(id="L005", name="few pairs", kind=Unsure, evidence=of(replace(WELL, drafts=pairs(moved_same=True, count=2)))),
    Case(id="L005", name="a chain", kind=Beside, evidence=of(WELL, "dflash:block_size=8")),
    Case(
        id="L006",
        name="drafts that became no tokens",
        kind=Hit,
        evidence=of(replace(WELL, answered=(LOST,))),
        words=("4.00 tokens a verify step by the drafts", "1.95 came", "34 tokens more are missing"),
    ),
    Case(id="L006", name="a cut last step", kind=Clear, evidence=of(WELL), words=("3.90 tokens a verify step, 4.20",)),
    Case(
        id="L006",
        name="no counts",
        kind=Unsure,
        evidence=of(replace(WELL, answered=(replace(ANSWER, verify_calls=None),))),
    ),
    Case(id="L006", name="unknown knobs", kind=Unsure, evidence=of(replace(WELL, max_drafts=None))),
    Case(id="L006", name="no speculation", kind=Beside, evidence=of(WELL, "none")),
    Case(
        id="L007",
        name="short answers",
        kind=Hit,
        evidence=of(replace(WELL, answered=(ANSWER, EARLY))),
        words=("1 of 2 answers", "9 of 40 tokens, finish_reason length"),
    ),
    Case(id="L007", name="whole answers", kind=Clear, evidence=of(WELL), words=("1 answers have the length",)),
    Case(id="L007", name="no probe", kind=Beside),
)
NEVER = {("L007", Unsure)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_probe_is_answered(case: Case) -> None:
    """Each check answers as the table says."""
    case.holds()


def test_every_check_has_each_answer() -> None:
    """Each check has a probe that it finds something in, one that is well and one that does not decide."""
    told = kinds(CASES)
    lacking = {
        (check.id, kind)
        for check in check_sets()["lossless"].checks
        for kind in (Hit, Clear, Unsure)
        if kind not in told[check.id]
    }
    assert lacking == NEVER


def test_a_probe_that_is_well_raises_nothing() -> None:
    """Of a sound probe no check finds anything, whatever else is unknown."""
    assert judge(of(WELL)).findings == ()
    assert judge(of(WELL, "dflash:block_size=8")).findings == ()


def test_a_replay_makes_a_loss_certain() -> None:
    """Counts alone may be wrong themselves; with a trace that shows it, tokens are lost for certain."""
    lost = of(replace(WELL, answered=(LOST,)))
    shown = replace(lost, replay=ReplayResult(sums=Sums(steps=20), by_kind={Kind.THROWN_AWAY: 15}))
    (likely,) = [one for one in judge(lost).findings if one.id == "L006"]
    (certain,) = [one for one in judge(shown).findings if one.id == "L006"]
    assert (likely.confidence, certain.confidence) == (Confidence.LIKELY, Confidence.CERTAIN)


def test_a_chain_is_named_without_a_trace() -> None:
    """Wrong drafts of a chain are named as positions though no node is known."""
    chain = replace(probe(Break.POSITION, positions_right=None), traced=False)
    assert {one.id for one in judge(of(chain, "dflash:block_size=8")).findings} == {"L003"}
