"""What GPUs say: each fault is told from how a healthy GPU lives (idle, full, saving power)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.sample.engine import DecodeSums, EngineCounters
from specctl.doctor.evidence import Evidence, GpuLook
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, look

FINE = GpuLook(
    index=0,
    model="Test",
    busy_ratio=0.95,
    power_w=550.0,
    power_limit_w=600.0,
    power_default_w=600.0,
    sm_clock_hz=2.4e9,
    sm_clock_max_hz=2.6e9,
    memory_used_bytes=85 << 30,
    memory_total_bytes=96 << 30,
    throttles=(),
    link_generation=5,
    link_generation_max=5,
    link_width=16,
    link_width_max=16,
)
SPINNING = replace(FINE, busy_ratio=1.0, power_w=140.0)
SUMS = DecodeSums(steps=10.0, requests=10.0, busy_s=1.0, request_busy_s=1.0, tokens=20.0)


def twice(one: GpuLook, **changes: object) -> Evidence:
    """Return two looks at one GPU that say the same."""
    changed = replace(one, **changes)  # type: ignore[arg-type]  # fields by name, as the tables give them
    return Evidence(gpus=(changed, replace(changed, at_s=5.0)))


def spinning(tokens: float, running: int = 4) -> Evidence:
    """Return GPUs that spin while so many tokens come."""
    seen = tuple(
        look(at, EngineCounters(decode_tokens=told), running=running, decoded=SUMS)
        for at, told in ((0.0, 100.0), (9.0, 100.0 + tokens))
    )
    return replace(twice(SPINNING), observations=seen)


CASES = (
    Case(
        id="S005",
        name="heat in two looks",
        kind=Hit,
        evidence=twice(FINE, throttles=("hw_thermal",)),
        words=("GPU 0", "hw_thermal"),
    ),
    Case(
        id="S005",
        name="a moment's slowdown",
        kind=Clear,
        evidence=Evidence(gpus=(replace(FINE, throttles=("hw_slowdown",)), replace(FINE, at_s=5.0))),
    ),
    Case(
        id="S005",
        name="a lowered power limit",
        kind=Hit,
        evidence=twice(FINE, power_limit_w=300.0),
        words=("300 W", "600 W by default"),
    ),
    Case(
        id="S005", name="locked clocks", kind=Hit, evidence=twice(FINE, sm_clock_hz=1.2e9), words=("1200 of 2600 MHz",)
    ),
    Case(
        id="S005",
        name="a full GPU at its power cap",
        kind=Clear,
        evidence=twice(FINE, sm_clock_hz=1.2e9, throttles=("sw_power_cap",)),
    ),
    Case(
        id="S005",
        name="an idle GPU",
        kind=Clear,
        evidence=twice(FINE, busy_ratio=0.0, sm_clock_hz=2e8, throttles=("idle",)),
    ),
    Case(id="S005", name="nothing told", kind=Unsure, evidence=twice(FINE, throttles=None, sm_clock_hz=None)),
    Case(id="S005", name="no GPUs asked", kind=Unsure),
    Case(id="S005", name="an engine without GPUs", kind=Beside, evidence=Evidence(no_gpus=True)),
    Case(
        id="S006",
        name="a hung all-reduce",
        kind=Hit,
        evidence=spinning(0.0),
        words=("100 %", "140 W", "4 requests running", "no token in 9 s"),
    ),
    Case(id="S006", name="low watts with tokens", kind=Clear, evidence=spinning(500.0)),
    Case(id="S006", name="low watts and nobody asks", kind=Clear, evidence=spinning(0.0, running=0)),
    Case(id="S006", name="hard work", kind=Clear, evidence=twice(FINE, busy_ratio=1.0)),
    Case(id="S006", name="no word of tokens", kind=Unsure, evidence=twice(SPINNING), words=("whether tokens come",)),
    Case(
        id="S007", name="eight of sixteen lanes", kind=Hit, evidence=twice(FINE, link_width=8), words=("8 of 16 lanes",)
    ),
    Case(
        id="S007",
        name="an old generation while it works",
        kind=Hit,
        evidence=twice(FINE, link_generation=1),
        words=("generation 1 of 5",),
    ),
    Case(id="S007", name="an idle link", kind=Clear, evidence=twice(FINE, link_generation=1, busy_ratio=0.0)),
    Case(id="S007", name="not told", kind=Unsure, evidence=twice(FINE, link_width=None, link_generation=None)),
    Case(
        id="S008",
        name="nearly full",
        kind=Hit,
        evidence=twice(FINE, memory_used_bytes=95 << 30),
        words=("GPU 0", "99.0 %"),
    ),
    Case(id="S008", name="room", kind=Clear, evidence=twice(FINE), words=("89 %",)),
    Case(id="S008", name="not told", kind=Unsure, evidence=twice(FINE, memory_used_bytes=None)),
    Case(id="S012", name="fallen off the bus", kind=Hit, evidence=twice(FINE, xids=(79,)), words=("GPU 0: XID 79",)),
    Case(id="S012", name="an agent that saw none", kind=Clear, evidence=replace(twice(FINE), knows_xids=True)),
    Case(id="S012", name="nobody watches", kind=Unsure, evidence=twice(FINE), words=("agent install",)),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
