"""A host that is whole passes everything; a host of which nothing is known fails nothing; waivers and skips let through."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.fleet.types import ServiceManager, Waiver
from specctl.lint.catalogue import by_id
from specctl.rollout.facts import HostFacts
from specctl.rollout.preflight import catalogue
from specctl.rollout.preflight.types import Finding, Level, Report
from tests.unit.rollout.preflight import subjects
from tests.unit.rollout.preflight.subjects import SERVER, subject

ENV = {"NCCL_P2P_LEVEL": "SYS", "NCCL_IB_DISABLE": "1"}


def test_a_whole_host_passes_everything() -> None:
    """Every check that applies to the field's machine passes, and nearly all apply."""
    found = subjects.report(subject(env=ENV)).findings
    assert {finding.level for finding in found} == {Level.PASS}
    assert {finding.id for finding in found} == catalogue.IDS - {"P040", "P042", "P043", "P024"}


def test_a_whole_host_with_nvswitches_passes_everything() -> None:
    """The same behind NVSwitches; what concerns PCIe does not apply."""
    found = subjects.report(subject(of=subjects.SWITCHED, env={"NCCL_ALGO": "Tree,NVLS"})).findings
    assert {finding.level for finding in found} == {Level.PASS}
    assert {"P040", "P043"} <= {finding.id for finding in found}
    assert not {"P044", "P045"} & {finding.id for finding in found}


@pytest.mark.parametrize("manager", ServiceManager)
def test_what_is_not_known_never_fails(manager: ServiceManager) -> None:
    """Of a host that answered nothing, every check that applies says unknown."""
    bare = subject(host_facts=HostFacts(host="gpu1"), capability=None, env=ENV)
    found = subjects.report(replace(bare, host=replace(subjects.HOST, manager=manager))).findings
    # The limits of a unit are the inventory's own, and who holds the lease is known by nobody holding it.
    assert {finding.level for finding in found if finding.id not in ("P006", "P009", "P017")} == {Level.UNKNOWN}
    assert not [finding for finding in found if finding.level is Level.FAIL]


def test_ids_are_in_order_and_single() -> None:
    """The catalogue is sorted by ids that are all different, each with words to explain it."""
    ids = [check.id for check in catalogue.CHECKS]
    assert ids == sorted(set(ids))
    assert all(check.title and check.remedy and check.why for check in catalogue.CHECKS)


def test_no_check_is_graver_than_it_says() -> None:
    """`worst` of a check, which the documentation shows, is not exceeded by any case of these tests' own breaking."""
    broken = subject(
        facts={"python_runs": False, "loaded": "masked", "packages": {}},
        machine={"systemd_runs": False, "clock_ahead_s": 1e6, "disks": ()},
        graphics={"problem": "Failed to initialize NVML: Driver/library version mismatch"},
        env={"NCCL_P2P_LEVEL": "NVL", "NCCL_ALGO": "Ring"},
    )
    order = [Level.UNKNOWN, Level.PASS, Level.WARN, Level.FAIL]
    worst = {check.id: check.worst for check in catalogue.CHECKS}
    assert all(order.index(one.level) <= order.index(worst[one.id]) for one in subjects.report(broken).findings)


def test_a_failure_refuses_until_it_is_waived() -> None:
    """Both a waiver of the inventory and one of the command line let a failure through, and are kept for the record."""
    masked = subject(facts={"loaded": "masked"})
    assert [finding.id for finding in subjects.report(masked).refusals] == ["P002"]
    skipped = subjects.report(masked, {"P002": "a drill"})
    assert (skipped.refusals, dict(skipped.skipped)) == ((), {"P002": "a drill"})
    waived = replace(masked, server=replace(SERVER, waivers=(Waiver(rule="P002", reason="as always"),)))
    assert dict(subjects.report(waived).skipped) == {"P002": "as always"}
    assert dict(subjects.report(waived, {"P002": "today"}).skipped) == {"P002": "today"}


def test_a_waiver_of_what_passes_changes_nothing() -> None:
    """What passes is no skipped check, whatever is waived."""
    found = subjects.report(subject(), {"P002": "a drill"})
    assert (dict(found.skipped), "waived" in found.counts()) == ({}, False)


def test_findings_of_others_join_the_report() -> None:
    """The linter's findings are counted, told and refuse like our own, and can be skipped."""
    lint = Finding(id="E001", title="flag", level=Level.FAIL, reason="no such flag", remedy="remove it")
    joined = catalogue.run(subject(), skipped={}, more=(lint,))
    assert joined.refusals == (lint,)
    skipped = catalogue.run(subject(), skipped={"E001": "why"}, more=(lint,))
    assert (skipped.refusals, dict(skipped.skipped)) == ((), {"E001": "why"})


def test_what_was_measured_silences_the_linters_guess() -> None:
    """Where the GPUs' distance is known, the rule that guesses it from the inventory says nothing; else it speaks."""
    guess = Finding(id="W052", title="level", level=Level.WARN, reason="narrow", remedy="SYS")
    env = {"NCCL_P2P_LEVEL": "SYS"}
    known = catalogue.run(subject(env=env), skipped={}, more=(guess,))
    assert guess not in known.findings
    blind = catalogue.run(subject(env=env, graphics={"topology": None}), skipped={}, more=(guess,))
    assert guess in blind.findings


def test_only_rules_of_the_linter_are_silenced() -> None:
    """Every rule that a check stands in for is one that there is."""
    assert {rule for check in catalogue.CHECKS for rule in check.measures} <= set(by_id())


def _finding(number: str, level: Level, waived: str | None = None) -> Finding:
    return Finding(id=number, title="t", level=level, reason="r", remedy="m", waived=waived)


def test_the_summary_counts_and_the_plan_tells_the_gravest_first() -> None:
    """Failures stand before warnings; what passes, is unknown or waived is counted alone."""
    found = Report(
        findings=(
            _finding("P001", Level.PASS),
            _finding("P002", Level.WARN),
            _finding("P003", Level.FAIL),
            _finding("P004", Level.UNKNOWN),
            _finding("P005", Level.FAIL, "why"),
        )
    )
    assert found.summary() == "1 pass, 1 warn, 1 fail, 1 unknown, 1 waived"
    assert [finding.id for finding in found.told()] == ["P003", "P002"]
    assert Report().summary() == "none apply"


WIRE = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 1 << 70) | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["index", "uuid", "gpus", "links", "pid", "units", "kinds", "path", "there", "config", "name"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
KEYS = (
    *("gpus", "gpu_processes", "topology", "fabric", "fabric_manager", "iommu", "acs", "limits", "disks", "hugepages"),
    *("memory_bytes", "memory_free_bytes", "nvswitches", "wall_s", "systemd", "systemd_runs", "infiniband", "servers"),
    *("gpu_problem", "driver_version", "time_synchronised", "cpu_count", "warnings", "at_s"),
)
SERVER_KEYS = (
    "target",
    "draft",
    "unit",
    "own_pids",
    "port",
    "python",
    "packages",
    "lease",
    "drift",
    "current",
    "warnings",
)


@given(st.dictionaries(st.sampled_from(KEYS), WIRE), st.dictionaries(st.sampled_from(SERVER_KEYS), WIRE))
def test_any_answer_of_a_host_is_checked(answer: dict[str, object], server: dict[str, object]) -> None:
    """Whatever a host answers, preflight ends with a report that can be shown; nothing crashes."""
    whole = {**answer, "servers": [{**server, "name": "chat"}]}
    facts = HostFacts.from_wire("gpu1", whole, 1000.0)
    found = subjects.report(subject(host_facts=facts, env=ENV))
    assert found.summary()
    assert facts.as_wire()["host"] == "gpu1"


@given(
    st.dictionaries(
        st.sampled_from(["NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_ALGO", "CUDA_VISIBLE_DEVICES", "NCCL_IB_DISABLE"]),
        st.text(max_size=12),
    ),
    st.lists(
        st.sampled_from(["--tp-size", "--mem-fraction-static", "--mem-fraction-static=", "nan", "-1", "1e400", "8"])
    ),
)
def test_any_launch_is_checked(env: dict[str, str], words: list[str]) -> None:
    """Whatever stands in a stored release, preflight ends with a report."""
    assert subjects.report(subject(env=env, argv=("/opt/venv/bin/python", "-m", "engine", *words))).summary()


def test_limits_without_end_can_be_shown() -> None:
    """An unlimited limit is a word in JSON, which has no infinity."""
    machine = replace(subjects.MACHINE, memlock_bytes=math.inf)
    assert machine.as_wire()["memlock_bytes"] == "unlimited"
