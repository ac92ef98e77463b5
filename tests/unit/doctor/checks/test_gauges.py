"""Stale gauges are told from gauges that stand because nothing moved, and from ones that are read in between."""

from __future__ import annotations

import pytest

from specctl.control.mode import parse
from specctl.control.sample.engine import DecodeSums, EngineCounters
from specctl.doctor.evidence import Evidence, Log, Observation
from specctl.doctor.types import Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, log, look, recorded_page

LINE = "Decode batch, #running-req: 1, #token: 60, accept len: {length}, accept rate: 0.14, cuda graph: True, #queue-req: 0"
NEW = log(*(LINE.format(length=length) for length in ("4.97", "5.10", "4.80")))


def seen(at_s: float, steps: float, gauge: float | None, running: float = 1.0, load: int = 1) -> Observation:
    """Return a look after so many steps, with what the gauges say."""
    sums = DecodeSums(steps=steps, requests=steps, busy_s=steps / 50, request_busy_s=steps / 50, tokens=2 * steps)
    counters = EngineCounters(decode_tokens=2 * steps, accept_length=gauge, running=running)
    return look(at_s, counters, decoded=sums, running=load)


def of(*looks: Observation, lines: Log = NEW) -> Evidence:
    """Return evidence of a chain."""
    return Evidence(mode=parse("dflash"), observations=looks, log=lines)


CASES = (
    Case(
        id="M022",
        name="a length of long ago",
        kind=Hit,
        evidence=of(seen(0, 0, 4.25), seen(9, 300, 4.25)),
        words=("4.25 at both looks", "4.80", "300 decode steps", "600 tokens"),
    ),
    Case(
        id="M022",
        name="a running that never was",
        kind=Hit,
        evidence=of(seen(0, 0, 4.8, 0, 4), seen(5, 200, 4.9, 0, 4), seen(9, 300, 5.0, 0, 4)),
        words=("0 running at each look", "says 4"),
    ),
    Case(id="M022", name="gauges that moved", kind=Clear, evidence=of(seen(0, 0, 4.25), seen(9, 300, 4.81))),
    Case(id="M022", name="the same length again", kind=Clear, evidence=of(seen(0, 0, 4.8), seen(9, 300, 4.8))),
    Case(
        id="M022",
        name="few steps",
        kind=Unsure,
        evidence=of(seen(0, 0, 4.25), seen(9, 100, 4.25)),
        words=("100 decode steps",),
    ),
    Case(
        id="M022",
        name="recorded pages without loads",
        kind=Unsure,
        evidence=of(recorded_page("dflash-busy-1"), recorded_page("dflash-after-8", 60.0)),
    ),
    Case(id="M022", name="one page", kind=Unsure, evidence=of(seen(0, 0, 4.25)), words=("fewer than two looks",)),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
