"""Checks of the place: service manager, folders, disk, port, lease, drift, clock, limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.fleet.types import ServiceManager, UnitSettings
from specctl.rollout.facts import Lease
from specctl.rollout.machine_facts import Disk
from specctl.rollout.observation import Port, UnitState
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Level
from tests import fakes
from tests.unit.rollout.preflight import subjects
from tests.unit.rollout.preflight.subjects import HOST, SERVER, STATE, finding, said, subject


def supervised(**more: object) -> Subject:
    """Return the field's launch under supervisor."""
    return replace(subject(**more), host=replace(HOST, manager=ServiceManager.SUPERVISOR))  # type: ignore[arg-type]  # as above


def test_systemd_that_does_not_run_the_host_fails() -> None:
    """The inventory says systemd, and the host has none: the remedy is the inventory's other word."""
    found = finding(subject(machine={"systemd_runs": False, "systemd": None}), "P001")
    assert found is not None
    assert (found.level, found.remedy) == (Level.FAIL, "set service_manager: supervisor for the host in the inventory")


def test_an_old_systemd_fails_only_with_keys() -> None:
    """LoadCredential= is needed for a server with keys, not for one without."""
    old = subject(machine={"systemd": "245.4"})
    assert said(old, "P001")[0] is Level.PASS
    keyed = replace(old, server=fakes.with_secrets("api_key"))
    assert said(replace(keyed, server=replace(keyed.server, name="chat")), "P001")[0] is Level.FAIL


def test_supervisor_is_known_by_its_answer() -> None:
    """Under supervisor there is no unit to be masked, and no systemd to be missing."""
    one = supervised(machine={"systemd_runs": False, "systemd": None})
    assert said(one, "P001")[0] is Level.PASS
    assert finding(one, "P002") is None


def test_a_masked_unit_fails_with_the_command_that_unmasks_it() -> None:
    """The remedy can be pasted."""
    found = finding(subject(facts={"loaded": "masked"}), "P002")
    assert found is not None
    assert found.remedy == "specctl exec --host gpu1 -- systemctl unmask specctl-chat.service"


def test_a_folder_that_cannot_be_written_fails() -> None:
    """A read-only /etc is found before anything is stopped."""
    disks = (Disk(path=STATE, writable=True), Disk(path="/etc/systemd/system", writable=False))
    level, reason = said(subject(machine={"disks": disks}), "P003")
    assert (level, reason) == (Level.FAIL, "/etc/systemd/system cannot be written: read-only, or another user's")


@pytest.mark.parametrize(("free", "level"), [(1 << 20, Level.FAIL), (100 << 20, Level.WARN), (2 << 30, Level.PASS)])
def test_room_for_releases(free: int, level: Level) -> None:
    """A full disk fails, a nearly full one warns."""
    assert said(subject(machine={"disks": (Disk(path=STATE, free_bytes=free),)}), "P004")[0] is level


def test_a_port_that_others_hold_fails_with_their_name() -> None:
    """The holder is named; the server's own port and a free one pass."""
    held = subject(facts={"port": Port.FOREIGN, "port_owner": "nginx (pid 7)"})
    assert said(held, "P005") == (Level.FAIL, "port 30001 is held by nginx (pid 7)")
    assert said(subject(facts={"port": Port.REFUSED}), "P005")[0] is Level.PASS


def test_a_held_lease_is_told_early_and_does_not_refuse() -> None:
    """Only the lease itself refuses: preflight warns."""
    lease = Lease(owner="ops@there", reason="kernel update")
    level, reason = said(subject(facts={"lease": lease}), "P006")
    assert level is Level.WARN
    assert reason.startswith("ops@there holds the server (kernel update)")


def test_drift_is_told_in_the_hosts_words() -> None:
    """A unit edited by hand is warned of; a server that was never deployed has nothing to drift from."""
    assert said(subject(facts={"drift": ("the unit file is missing",)}), "P007") == (
        Level.WARN,
        "the unit file is missing",
    )
    assert finding(subject(facts={"current": None}), "P007") is None


@pytest.mark.parametrize(
    ("ahead", "level", "words"),
    [
        (59.0, Level.PASS, "59 s apart"),
        (-61.0, Level.WARN, "61 s behind"),
        (600.0, Level.WARN, "10 min ahead of"),
        (-3 * 86400.0, Level.WARN, "3.0 d behind"),
    ],
)
def test_a_clock_that_is_off_warns_and_never_fails(ahead: float, level: Level, words: str) -> None:
    """Leases and deadlines count by monotonic time, so even a clock that is days off is only told."""
    found = said(subject(machine={"clock_ahead_s": ahead}), "P008")
    assert found[0] is level
    assert words in found[1]


@pytest.mark.parametrize("ahead", [0.0, 600.0])
@pytest.mark.parametrize(
    ("kept", "words"), [(True, "a time service keeps"), (False, "no time service keeps"), (None, "is not known")]
)
def test_who_keeps_the_clock_is_said_in_a_sentence(ahead: float, kept: bool | None, words: str) -> None:
    """Whatever is known of it, and however far the clock is off, it reads as a clause about the host's clock."""
    reason = said(subject(machine={"clock_ahead_s": ahead, "clock_synchronised": kept}), "P008")[1]
    assert words in reason
    assert "is whether" not in reason
    assert ("keeps the host's" if ahead == 0 else "keeps it") in reason


def test_limits_that_the_inventory_lowers() -> None:
    """The unit that specctl writes lifts them; unit.extra may lower them again."""
    assert said(subject(), "P009")[0] is Level.PASS
    low = replace(SERVER, unit=UnitSettings(extra=(("LimitNOFILE", "1024"),)))
    assert said(replace(subject(), server=low), "P009")[0] is Level.WARN


def test_locked_memory_matters_for_rdma_alone() -> None:
    """With an InfiniBand adapter that NCCL may use, 8 MiB are too little; with NCCL_IB_DISABLE=1 they are no matter."""
    adapter = {"infiniband": ("mlx5_0",)}
    assert said(supervised(machine=adapter), "P009")[0] is Level.WARN
    assert said(supervised(machine=adapter, env={"NCCL_IB_DISABLE": "1"}), "P009")[0] is Level.PASS
    assert said(supervised(), "P009")[0] is Level.PASS
    assert said(supervised(machine={"nofile": 1024.0}), "P009")[0] is Level.WARN


def test_a_supervisor_that_says_nothing_is_unknown() -> None:
    """Nothing is claimed of a manager that did not answer."""
    assert said(supervised(facts={"unit": UnitState()}), "P001")[0] is Level.UNKNOWN
    assert subjects.SERVER.name == "chat"
