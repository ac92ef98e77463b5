"""A real SGLang 0.5.23 server, as recorded: it raises nothing but what it says of itself, and a frozen one is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import parse
from specctl.control.sample.engine import Page
from specctl.doctor.evidence import Evidence, Observation
from specctl.doctor.judge import judge
from tests.unit.doctor.checks.cases import RECORDED, recorded_load, recorded_log, recorded_page

START_S = -60.0


def both(load: str, page: str, at_s: float) -> Observation:
    """Return a look at both routes."""
    told = recorded_page(page).page
    assert told is not None
    return replace(recorded_load(load, at_s), page=Page(at_s=at_s, counters=told.counters))


def evidence(log: str, mode: str, *seen: Observation) -> Evidence:
    """Return what the doctor would gather of a recorded server."""
    return Evidence(
        mode=parse(mode),
        counts_root=True,
        counts_bonus=True,
        log=recorded_log(f"logs/{log}/server.log"),
        observations=seen,
        started_s=START_S,
        same_start=True,
        steady=True,
        no_gpus=True,
    )


def test_a_chain_raises_nothing_but_its_own_warning() -> None:
    """Loads, pages and log of a DFLASH server agree on every basis that they have."""
    seen = (both("dflash-busy-4", "dflash-busy-4-whole", 0.0), both("dflash-busy-8", "dflash-after-8", 30.0))
    report = judge(evidence("spec-dflash", "dflash:block_size=8", *seen))
    assert [(one.id, one.message[:4]) for one in report.findings] == [("C007", "N006")]
    assert {"M001", "M008", "M010", "M017", "M018", "M019", "S010"} <= {one.id for one in report.passed}


def test_a_useless_drafter_is_no_contradiction() -> None:
    """A random drafter accepts nothing, and that is no lie of any metric."""
    report = judge(evidence("spec-dflash-random-drafter", "dflash:block_size=8"))
    assert [one.id for one in report.findings] == ["C007"]


@pytest.mark.parametrize("name", ["frozen-12s", "frozen-40s"])
def test_a_frozen_scheduler_is_named(name: str) -> None:
    """A server that answers with old figures stands still; nothing else is made of those."""
    report = judge(
        evidence("sigstop-scheduler-idle", "none", recorded_load("frozen-before", 0.0), recorded_load(name, 40.0))
    )
    assert [one.id for one in report.findings] == ["S010", "C007"]  # its log says N002: no answer to its own check


@pytest.mark.parametrize("path", sorted((RECORDED / "loads").glob("*.json")), ids=lambda path: path.stem)
def test_no_recorded_answer_contradicts_itself(path: object) -> None:
    """Whatever a real server answered, paused or queueing or new, no metric is called a liar for it."""
    stem = str(path).rpartition("/")[2].removesuffix(".json")
    mode = "dflash:block_size=8" if stem.startswith("dflash") else "none"
    found = judge(evidence("startup-ok", mode, recorded_load(stem))).findings
    assert {one.id for one in found} <= {"S010"}
