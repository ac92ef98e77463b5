"""A real SGLang 0.5.23 server, as recorded: it raises nothing but what it says of itself, and a frozen one is named."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.control.mode import parse
from specctl.control.sample import engine_info, engine_loads, engine_metrics
from specctl.control.sample.engine import Look, Page
from specctl.control.sample.engine_lines import reader
from specctl.doctor import lines
from specctl.doctor.evidence import Evidence, Observation, Served
from specctl.doctor.judge import judge
from specctl.engines._sglang_log import GRAMMAR
from specctl.engines._sglang_metrics import METRICS
from specctl.fleet.profiles import Profiles
from tests.unit.doctor.checks.cases import RECORDED, recorded_load, recorded_log, recorded_page

START_S = -60.0
PLUGGED = RECORDED.parent / "sglang-ddtree"


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


def plugged(name: str) -> Evidence:
    """Return what the doctor would gather of the server with the plugin, turned live to a mode, under a load of its own."""
    told = json.loads((PLUGGED / f"{name}.json").read_text(encoding="utf-8"))
    profile = Profiles({}, BuiltInProfiles()).get("sglang-0.5.23+ddtree")
    assert profile is not None
    info = engine_info.parse(json.dumps(told["info"]).encode())
    assert info is not None
    seen = lines.read(told["log"], reader(GRAMMAR, profile.tree_line))
    return Evidence(
        mode=engine_info.claimed(info, profile),
        counts_root=profile.counts_root,
        counts_bonus=profile.counts_bonus,
        has_tree_line=profile.tree_line is not None,
        info=info,
        log=seen,
        served_log=seen,
        served=tuple(Served(**answer) for answer in told["answers"]),
        served_alone=True,
        observations=tuple(looked(look) for look in told["looks"]),
        same_start=True,
        no_gpus=True,
    )


def looked(told: dict[str, Any]) -> Observation:
    """Return a recorded look."""
    load = engine_loads.parse(json.dumps(told["loads"]).encode())
    assert load is not None
    counters = engine_metrics.parse("\n".join(told["metrics"]).encode(), METRICS)
    at_s = told["at_s"]
    return Observation(at_s=at_s, look=Look(at_s=at_s, load=load, ready=True), page=Page(at_s=at_s, counters=counters))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("none", "none"),
        ("dflash", "dflash:block_size=8"),
        ("ddtree", "ddtree:block_size=8,topk_cap=4,tree_budget=16"),
        ("straight", "ddtree:block_size=8,topk_cap=1,tree_budget=3"),
    ],
)
def test_a_server_with_the_plugin_raises_nothing(name: str, mode: str) -> None:
    """Verify passes in every mode, rates of the widest step and lines that begin apart are no contradictions; claims are judged."""
    evidence = plugged(name)
    assert str(evidence.mode) == mode
    report = judge(evidence)
    assert [(one.id, one.message) for one in report.findings] == []
    assert {"M001", "M002", "M011", "M012", "M014", "M028"} <= {one.id for one in report.passed}


@pytest.mark.parametrize(
    ("name", "claimed", "ids"),
    [
        ("none", "dflash:block_size=8", {"M014"}),
        ("none", "ddtree:block_size=8,topk_cap=4,tree_budget=16", {"M011", "M014", "M028"}),
        ("dflash", "none", {"M012", "M014", "M028"}),
        ("dflash", "ddtree:block_size=8,topk_cap=4,tree_budget=16", {"M011", "M014", "M028"}),
        ("ddtree", "none", {"M011", "M012", "M014", "M028"}),
        ("ddtree", "dflash:block_size=8", {"M011", "M014", "M028"}),
    ],
)
def test_another_mode_of_the_plugin_than_is_claimed_is_named(name: str, claimed: str, ids: set[str]) -> None:
    """Each of its three modes is told from the two others, though all three decode by verify passes."""
    report = judge(replace(plugged(name), mode=parse(claimed)))
    assert ids <= {one.id for one in report.findings}
