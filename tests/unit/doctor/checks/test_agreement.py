"""What must agree, and what must not be compared; the twins of the field's decisive experiment among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import mode, parse
from specctl.doctor.evidence import Evidence, Speed
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, log, recorded_log
from tests.unit.doctor.worlds import Truth, World

CHAIN, TREE = parse("dflash:block_size=8"), parse("ddtree:block_size=8,tree_budget=7,topk_cap=1")
BRANCHED = Truth().mode
WORLD = World.of(Truth())
LATE = World.of(Truth(passes=True, late=17, widest=63))
CHAINED = World.of(Truth(mode=CHAIN))
PLAIN = World.of(Truth(mode=mode("none")))
ROOTS = World.of(Truth(mode=mode("none"), passes=True))
STRAIGHT = World.of(Truth(mode=parse("ddtree:block_size=8,tree_budget=3,topk_cap=1"), passes=True))


def twins(chain: Speed, tree: Speed) -> Evidence:
    """Return evidence with both."""
    return Evidence(mode=TREE, speeds=(chain, tree))


def chain(tokens_s: float, **more: float) -> Speed:
    """Return a chain's figure at one stream."""
    return Speed(mode=CHAIN, tokens_s=tokens_s, concurrency=1.0, **more)  # type: ignore[arg-type]  # fields by name, as the tables give them


def tree(tokens_s: float, **more: float) -> Speed:
    """Return the figure of a tree of one chain at one stream."""
    return Speed(mode=TREE, tokens_s=tokens_s, concurrency=1.0, **more)  # type: ignore[arg-type]  # fields by name, as the tables give them


def other(line: str) -> str:
    """Return a line with another accept length."""
    return line.replace("accept len: 2", "accept len: 3").replace("accept len: 1", "accept len: 4")


CASES: tuple[Case, ...] = (
    Case(id="M020", name="two lines of a truth", kind=Clear, evidence=WORLD.evidence()),
    Case(
        id="M020",
        name="two lines that differ",
        kind=Hit,
        evidence=WORLD.evidence(other),
        words=("accept len", "with the bonus"),
    ),
    Case(
        id="M020",
        name="lines that begin half a window apart",
        kind=Clear,
        evidence=LATE.evidence(),
        words=("do not begin together", "means"),
    ),
    Case(
        id="M020",
        name="lines that begin apart, and differ",
        kind=Hit,
        evidence=LATE.evidence(other),
        words=("accept len", "with the bonus"),
    ),
    Case(
        id="M020",
        name="one window that begins apart",
        kind=Unsure,
        evidence=Evidence(mode=TREE, log=log(*LATE.log[2:4])),
        words=("may not begin together",),
    ),
    Case(
        id="M020",
        name="recorded lines of a chain",
        kind=Beside,
        evidence=Evidence(mode=CHAIN, log=recorded_log("logs/spec-dflash/server.log")),
    ),
    Case(
        id="M020",
        name="a tree line alone",
        kind=Unsure,
        evidence=Evidence(mode=TREE, log=log("DDTREE metrics: bs=1 budget=7")),
    ),
    Case(
        id="M023",
        name="the field's 3.5 at many and 2.3 at one",
        kind=Hit,
        evidence=Evidence(
            mode=CHAIN,
            speeds=(
                Speed(mode=CHAIN, tokens_s=900.0, accept_length=3.5, concurrency=16.0),
                chain(110.4, accept_length=2.3),
            ),
        ),
        words=("3.50 at concurrency 16", "2.30 at concurrency 1"),
    ),
    Case(
        id="M023",
        name="recorded lines",
        kind=Clear,
        evidence=Evidence(mode=CHAIN, log=recorded_log("logs/spec-dflash/server.log")),
    ),
    Case(id="M023", name="few lines", kind=Unsure, evidence=Evidence(mode=CHAIN, log=log("nothing"))),
    Case(id="M023", name="plain decoding", kind=Beside, evidence=Evidence(mode=mode("none"))),
    Case(
        id="M024",
        name="a rate a draft beside a rate a node",
        kind=Hit,
        evidence=twins(chain(110.4, accept_rate=0.19), tree(109.7, accept_rate=0.18)),
        words=("of 7 drafts", "per node"),
    ),
    Case(
        id="M024",
        name="two chains",
        kind=Clear,
        evidence=Evidence(speeds=(chain(1.0, accept_rate=0.2), chain(2.0, accept_rate=0.3))),
    ),
    Case(id="M024", name="no rates", kind=Beside, evidence=twins(chain(110.4), tree(109.7))),
    Case(
        id="M025",
        name="the field's decisive experiment",
        kind=Clear,
        evidence=twins(chain(110.4), tree(109.7)),
        words=("-0.6 %",),
    ),
    Case(
        id="M025",
        name="counted and equal",
        kind=Clear,
        evidence=twins(chain(110.4, steps_s=48.0), tree(109.7, steps_s=48.0)),
    ),
    Case(
        id="M025",
        name="counted and apart",
        kind=Hit,
        evidence=twins(chain(110.4, steps_s=48.0), tree(90.0, steps_s=50.0)),
        words=("1.80", "2.30", "same drafts"),
    ),
    Case(
        id="M025",
        name="slower, not counted",
        kind=Unsure,
        evidence=twins(chain(110.4), tree(90.0)),
        words=("-18.5 %", "specctl ab"),
    ),
    Case(
        id="M025",
        name="a wide tree",
        kind=Beside,
        evidence=twins(
            chain(110.4), Speed(mode=parse("ddtree:block_size=8,tree_budget=32"), tokens_s=50.0, concurrency=1.0)
        ),
    ),
)
CASES += (
    Case(id="M028", name="a tree that prints its lines", kind=Clear, evidence=WORLD.evidence(), words=("tree lines",)),
    Case(
        id="M028",
        name="a chain that claims to be a tree",
        kind=Hit,
        evidence=replace(CHAINED.evidence(), mode=BRANCHED),
        words=("claims ddtree", "no tree's"),
    ),
    Case(
        id="M028",
        name="a tree that claims to be a chain",
        kind=Hit,
        evidence=replace(WORLD.evidence(), mode=CHAIN),
        words=("claims dflash", "only a tree prints"),
    ),
    Case(
        id="M028",
        name="plain decoding that claims to draft",
        kind=Hit,
        evidence=replace(PLAIN.evidence(), mode=CHAIN),
        words=("no verify calls",),
    ),
    Case(id="M028", name="plain decoding", kind=Clear, evidence=PLAIN.evidence()),
    Case(id="M028", name="plain decoding by verify passes", kind=Clear, evidence=ROOTS.evidence()),
    Case(
        id="M028",
        name="a chain that claims to be plain decoding by verify passes",
        kind=Hit,
        evidence=replace(CHAINED.evidence(), mode=mode("none")),
        words=("claims none", "verify calls"),
    ),
    Case(id="M028", name="a straight tree with a chain's lines", kind=Clear, evidence=STRAIGHT.evidence()),
    Case(id="M028", name="a chain", kind=Clear, evidence=CHAINED.evidence()),
    Case(
        id="M028",
        name="a build without tree lines",
        kind=Clear,
        evidence=replace(CHAINED.evidence(), mode=BRANCHED, has_tree_line=False),
    ),
    Case(id="M028", name="no load of ours", kind=Unsure, evidence=Evidence(mode=TREE)),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
