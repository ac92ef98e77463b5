"""What verification costs: by figures of several modes at one concurrency, never across concurrencies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import Mode, parse
from specctl.doctor.evidence import Evidence, Speed
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case

NONE, CHAIN = parse("none"), parse("dflash:block_size=8")
NARROW = parse("ddtree:block_size=8,tree_budget=7,topk_cap=1")
WIDE = parse("ddtree:block_size=8,tree_budget=32,topk_cap=8")


def speed(mode: Mode, tokens_s: float, length: float | None = None, at: float | None = 1.0) -> Speed:
    """Return a figure."""
    return Speed(mode=mode, tokens_s=tokens_s, accept_length=length, concurrency=at)


def of(mode: Mode | None, *speeds: Speed) -> Evidence:
    """Return evidence of a mode with these figures."""
    return Evidence(mode=mode, speeds=speeds, steady=True)


CASES = (
    Case(
        id="S002",
        name="two prompt sets",
        kind=Unsure,
        evidence=of(WIDE, speed(CHAIN, 110.4, 2.3), replace(speed(WIDE, 50, 1.75), source="bench of others")),
    ),
    Case(
        id="S001",
        name="slower than none",
        kind=Hit,
        evidence=of(CHAIN, speed(NONE, 98), speed(CHAIN, 86, 3.5)),
        words=("12 % are lost", "3.99 steps without speculation", "commits 3.50"),
    ),
    Case(
        id="S001",
        name="faster than none",
        kind=Clear,
        evidence=of(CHAIN, speed(NONE, 98), speed(CHAIN, 110.4, 2.3)),
        words=("20.8 ms", "2.04 steps"),
    ),
    Case(id="S001", name="within the spread", kind=Clear, evidence=of(CHAIN, speed(NONE, 98), speed(CHAIN, 97, 2.0))),
    Case(
        id="S001",
        name="none at another concurrency",
        kind=Unsure,
        evidence=of(CHAIN, speed(NONE, 98, at=8.0), speed(CHAIN, 86, 3.5)),
        words=("bench",),
    ),
    Case(id="S001", name="plain decoding", kind=Beside, evidence=of(NONE, speed(NONE, 98))),
    Case(
        id="S002",
        name="the field's wide tree",
        kind=Hit,
        evidence=of(WIDE, speed(CHAIN, 110.4, 2.3), speed(WIDE, 50, 1.75)),
        words=("33 tokens a step", "50.0 tok/s", "110.4", "-24 %", "0.57 ms a node", "55 % of the narrower"),
    ),
    Case(
        id="S002",
        name="a tree that pays",
        kind=Clear,
        evidence=of(WIDE, speed(CHAIN, 100, 2.0), speed(WIDE, 130, 3.0)),
        words=("ms a node",),
    ),
    Case(
        id="S002",
        name="two budgets",
        kind=Hit,
        evidence=of(WIDE, speed(NARROW, 110, 2.2), speed(WIDE, 80, 2.6)),
        words=("ms of 33 tokens", "ms of 8"),
    ),
    Case(
        id="S002",
        name="two concurrencies",
        kind=Unsure,
        evidence=of(WIDE, speed(CHAIN, 110.4, 2.3), speed(WIDE, 50, 1.75, at=8.0)),
    ),
    Case(id="S002", name="a chain alone", kind=Beside, evidence=of(CHAIN, speed(NONE, 98), speed(CHAIN, 110.4, 2.3))),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
