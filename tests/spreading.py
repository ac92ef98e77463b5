"""How pytest-xdist spreads the tests over its workers: a file's together, those on hosts one by one, what takes long first.

Tests of a file share servers. Those on hosts share a worker's fleet, which each test makes fresh. What takes long must not begin
last: all other workers would wait for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has no types

HOSTS = "tests/fleet/"
# Its tests bring fleets up and end them, and look at what is left.
FLEETS = "tests/fleet/test_hosts.py"
# Files, and tests on hosts, that take more than about twenty seconds on two cores, the longest first. The list is about time alone:
# a long test that it lacks is no error.
LONG = (
    "tests/fleet/test_agent_story.py",
    "tests/unit/cli/test_local_calibrate.py",
    "tests/unit/ops/test_doctor_faults.py",
    "tests/fleet/test_faults_operator.py::test_killed_at_every_step",
    "tests/fleet/test_calibrate.py",
    "tests/unit/agent/test_perform.py",
    "tests/fleet/test_status.py",
    "tests/fleet/test_ab.py::test_interrupted_and_killed",
    "tests/unit/cli/test_ab.py",
    "tests/fleet/test_guarded_deploy.py::test_ssh_cut_for_good",
    "tests/fleet/test_faults_secrets.py",
    "tests/fleet/test_guarded_deploy.py::test_cli_killed_in_the_load",
    "tests/unit/test_demo.py",
    "tests/unit/cli/test_local_deploy.py",
    "tests/unit/agent/test_loop_faults.py",
    "tests/unit/ops/test_doctor_healthy.py",
    FLEETS,
    "tests/fleet/test_agent_acting.py",
    "tests/fleet/test_agent_install.py",
    "tests/fleet/test_guarded_deploy.py",
    "tests/fleet/test_top.py::test_the_fleet_on_one_screen",
    "tests/fleet/test_eight.py",
    "tests/fleet/test_faults_engine.py",
    "tests/unit/agent/test_crashes.py",
    "tests/fleet/test_faults_operator.py",
    "tests/fleet/test_ab.py",
    "tests/unit/hostile",
    "tests/fleet/test_bench.py::test_restart_in_between_ends_the_bench",
    "tests/fleet/test_session.py::test_a_cut_cable_frees_the_lease_and_leaves_the_unit",
    "tests/fleet/test_guard.py::test_a_killed_guard_goes_on",
    "tests/fleet/test_deploy.py",
    "tests/fleet",
)


class Spreading(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Units of work in the order of the collection, which `longest_first` has made."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of_work(nodeid)


def unit_of_work(nodeid: str) -> str:
    """Return what a test is handed out with: its file, or on hosts itself alone."""
    return nodeid if nodeid.startswith(HOSTS) and not nodeid.startswith(FLEETS) else _file(nodeid)


def longest_first(nodeids: Sequence[str]) -> list[int]:
    """Return the places of the tests in the order in which they begin: the long ones, then the files of most tests."""
    counts = Counter(map(_file, nodeids))
    return sorted(range(len(nodeids)), key=lambda at: (_rank(nodeids[at]), -counts[_file(nodeids[at])]))


def _file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


def _rank(nodeid: str) -> int:
    return next((rank for rank, name in enumerate(LONG) if nodeid.startswith(name)), len(LONG))
