"""What the checks of verify traces answer to replays: each kind of divergence under its own id."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

from specctl.doctor import replay
from specctl.doctor.catalogue import check_sets
from specctl.doctor.checks import replayed
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.replay_types import Kind
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor import test_replay as bent
from tests.unit.doctor.checks.cases import Case, kinds
from tests.unit.doctor.traces import Record, random_trace, text

SEED = 12


def traced(*, mutate: bent.Mutation | None = None, without: tuple[str, ...] = (), lost: int | None = None) -> Evidence:
    """Return evidence of a trace with one wrong step, fields left out, or a line cut."""
    records = random_trace(SEED, requests=2, steps=6)
    if mutate is not None:
        inner = [record for record in records if record["kind"] == "verify" and record["finish"] is None]
        assert any(_tried(record, mutate, Random(SEED)) for record in inner)
    for record in records:
        for name in without:
            record.pop(name, None)
    lines = text(records)
    if lost is not None:
        lines[lost] = lines[lost][:20]
    return Evidence(replay=replay.check(lines))


def _tried(record: Record, mutate: bent.Mutation, chance: Random) -> bool:
    whole = json.loads(json.dumps(record))
    if mutate(record, chance):
        return True
    record.clear()
    record.update(whole)
    return False


WELL = traced()
NOTHING = Evidence(replay=replay.check(['{"v":1,"kind":"trace"}']))
CASES = (
    Case(
        id="L010",
        name="a sibling",
        kind=Hit,
        evidence=traced(mutate=bent.sibling_accepted),
        words=("1 of 12 verify steps", "request r0", "the target said"),
    ),
    Case(
        id="L010",
        name="a wrong token",
        kind=Hit,
        evidence=traced(mutate=bent.wrong_token),
        words=("1 × a committed token is not the accepted one",),
    ),
    Case(id="L010", name="well", kind=Clear, evidence=WELL, words=("12 verify steps of 2 requests agree",)),
    Case(id="L010", name="no steps", kind=Unsure, evidence=NOTHING, words=("no verify step",)),
    Case(id="L010", name="no trace", kind=Beside),
    Case(
        id="L011", name="a path cut", kind=Hit, evidence=traced(mutate=bent.truncated_path), words=("the walk stopped",)
    ),
    Case(
        id="L011",
        name="tokens lost",
        kind=Hit,
        evidence=traced(mutate=bent.thrown_away),
        words=("and the request goes on",),
    ),
    Case(id="L011", name="well", kind=Clear, evidence=WELL),
    Case(id="L011", name="no steps", kind=Unsure, evidence=NOTHING),
    Case(id="L012", name="shifted", kind=Hit, evidence=traced(mutate=bent.position_off), words=("is due",)),
    Case(id="L012", name="well", kind=Clear, evidence=WELL),
    Case(
        id="L012",
        name="not told",
        kind=Unsure,
        evidence=traced(without=("positions",)),
        words=("does not tell positions",),
    ),
    Case(
        id="L013",
        name="too many nodes",
        kind=Hit,
        evidence=traced(mutate=bent.over_budget),
        words=("root included, at budget",),
    ),
    Case(id="L013", name="well", kind=Clear, evidence=WELL),
    Case(
        id="L013",
        name="not told",
        kind=Unsure,
        evidence=traced(without=("budget", "block", "topk")),
        words=("budget or block or topk",),
    ),
    Case(
        id="L014", name="depth", kind=Hit, evidence=traced(mutate=bent.depth_off), words=("on any path depth = drafts",)
    ),
    Case(id="L014", name="well", kind=Clear, evidence=WELL),
    Case(id="L014", name="not told", kind=Unsure, evidence=traced(without=("drafts", "depth"))),
    Case(id="L015", name="a cut line", kind=Hit, evidence=traced(lost=3), words=("1 of 14 lines", "line 4: no JSON")),
    Case(id="L015", name="well", kind=Clear, evidence=WELL, words=("14 lines",)),
    Case(id="L015", name="no trace", kind=Beside),
)
NEVER = {("L015", Unsure)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_replay_is_answered(case: Case) -> None:
    """Each check answers as the table says."""
    case.holds()


def test_every_check_has_each_answer() -> None:
    """Each check has a trace that it finds something in, one that is well and one that does not decide."""
    told = kinds(CASES)
    lacking = {
        (check.id, kind)
        for check in check_sets()["replayed"].checks
        for kind in (Hit, Clear, Unsure)
        if kind not in told[check.id]
    }
    assert lacking == NEVER


@pytest.mark.parametrize("mutate", bent.MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_wrong_step_is_one_finding(mutate: Callable[..., bool]) -> None:
    """Whatever a step gets wrong is told by exactly one check."""
    assert len(judge(traced(mutate=mutate)).findings) == 1


def test_every_kind_belongs_to_one_check() -> None:
    """No kind of divergence goes untold, none is told twice."""
    told = (*replayed.TOKENS, *replayed.LOST, *replayed.COUNTS, *replayed.SHAPE, Kind.POSITION)
    assert sorted(kind.name for kind in told) == sorted(kind.name for kind in Kind)
