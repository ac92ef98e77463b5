"""A commit against what requests got, on the bases that there are: our own requests, counted steps, counters since the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import mode, parse
from specctl.control.sample.engine import EngineCounters
from specctl.doctor.evidence import Evidence, Served, Speed
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, log, look
from tests.unit.doctor.worlds import Truth, World, without

TREE = parse("ddtree:block_size=8,tree_budget=7,topk_cap=1")
LINE = "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=1.30 avg_commit_len=2.30 avg_accepted_depth=1.30"
SERVED = tuple(Served(tokens=231, verify_calls=100, finish="length") for _ in range(4))
BARE = Evidence(mode=TREE, counts_bonus=True, steady=True, log=log(LINE), served_alone=True)
COUNTERS = EngineCounters(generated_tokens=23_100.0, requests=100.0, verify_calls=10_000.0)
CUT = log(LINE.replace("commit_len=2.30", "commit_len=1.30"))


def fast(steps_s: float) -> tuple[Speed, ...]:
    """Return a run that counted verify steps."""
    return (Speed(mode=TREE, tokens_s=115.0, concurrency=1.0, steps_s=steps_s, run="bench-1"),)


# Requests of a step or two each: too few for what they got a step.
BRIEF = tuple(Served(tokens=3, verify_calls=1, finish="stop") for _ in range(3))
SHORT_LINE = LINE.replace("commit_len=2.30", "commit_len=1.30")


CASES = (
    Case(
        id="M004",
        name="one short line, and requests that ended in it",
        kind=Unsure,
        evidence=replace(BARE, log=CUT, served=BRIEF, served_log=CUT),
        words=("1 of 1 tree lines fall short, and 4 requests ended meanwhile",),
    ),
    Case(
        id="M004",
        name="more short lines than requests that ended",
        kind=Hit,
        evidence=replace(BARE, log=log(*[SHORT_LINE] * 9), served=BRIEF, served_log=log(*[SHORT_LINE] * 9)),
        words=("9 of 9 tree lines",),
    ),
    Case(id="M004", name="a short line, and nobody counted ends", kind=Hit, evidence=replace(BARE, log=CUT)),
    Case(
        id="M021",
        name="our own requests agree",
        kind=Clear,
        evidence=replace(BARE, served=SERVED),
        words=("2.30", "got 2.30"),
    ),
    Case(
        id="M021",
        name="our own requests got more",
        kind=Hit,
        evidence=replace(BARE, log=CUT, served=SERVED),
        words=("1.30, 43.5 % low", "got 2.30", "920 tokens after their first in 400 verify calls", "none on tokens"),
    ),
    Case(
        id="M021",
        name="a build that leaves the bonus out",
        kind=Clear,
        evidence=replace(BARE, log=CUT, served=SERVED, counts_bonus=False),
    ),
    Case(id="M021", name="a run that counted steps agrees", kind=Clear, evidence=replace(BARE, speeds=fast(50.0))),
    Case(
        id="M021",
        name="a run that counted steps",
        kind=Hit,
        evidence=replace(BARE, log=CUT, speeds=fast(50.0)),
        words=("115.0 tokens/s of a request ÷ 50.0 verify steps/s",),
    ),
    Case(
        id="M021",
        name="a bench of another day is of other requests",
        kind=Unsure,
        evidence=replace(BARE, log=CUT, speeds=fast(50.0), observations=(look(9.0),)),
    ),
    Case(
        id="M021",
        name="counters since the start",
        kind=Hit,
        evidence=replace(BARE, log=CUT, observations=(look(9.0, COUNTERS),)),
        words=("23000 tokens after the first of 100 requests",),
    ),
    Case(
        id="M021",
        name="counters of a mode that changed",
        kind=Unsure,
        evidence=replace(BARE, log=CUT, observations=(look(9.0, COUNTERS),), steady=False),
    ),
    Case(
        id="M021", name="few steps", kind=Unsure, evidence=replace(BARE, served=(Served(tokens=24, verify_calls=10),))
    ),
    Case(
        id="M021",
        name="aborted requests count for nothing",
        kind=Unsure,
        evidence=replace(BARE, served=tuple(replace(one, finish="abort") for one in SERVED)),
    ),
    Case(id="M021", name="plain decoding", kind=Beside, evidence=Evidence(mode=mode("none"))),
    Case(
        id="M026",
        name="half is lost",
        kind=Hit,
        evidence=replace(BARE, served=tuple(replace(one, tokens=121) for one in SERVED)),
        words=("1.30 drafts", "2.30 tokens", "got 1.20", "48 %"),
    ),
    Case(id="M026", name="all came", kind=Clear, evidence=replace(BARE, served=SERVED)),
    Case(id="M026", name="no drafts told", kind=Unsure, evidence=replace(BARE, log=None, served=SERVED)),
    Case(id="M026", name="nothing counted", kind=Unsure, evidence=BARE),
    Case(id="M026", name="plain decoding", kind=Beside, evidence=Evidence(mode=mode("none"))),
    Case(
        id="M027",
        name="five tokens each",
        kind=Hit,
        evidence=World.of(replace(Truth(), lengths=(4, 6), requests=400, drafted=0.85)).evidence(),
        words=("verify steps each", "nobody's"),
    ),
    Case(id="M027", name="long requests", kind=Clear, evidence=World.of(Truth()).evidence()),
    Case(
        id="M027",
        name="nothing counted",
        kind=Unsure,
        evidence=without(World.of(Truth()).evidence(), "served", "observations"),
    ),
    Case(id="M027", name="plain decoding", kind=Beside, evidence=Evidence(mode=mode("none"))),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
