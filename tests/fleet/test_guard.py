"""The guard on a real systemd host: whatever becomes of the operator, the host ends with the confirmed release, or stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from specctl.adapters import session_payload
from specctl.adapters.ssh_resolve import CONFIG_VARIABLE
from specctl.errors import LockHeldError, RemoteCommandError
from tests.fleet import fleet as fleets
from tests.fleet.test_session import DIR, UNIT, Deployed, Session
from tests.fleet.waiting import FleetError, until

GUARD = "specctl-guard@k26"
STATE = f"{DIR}/guard/state.json"
LONG_S = 600.0
SCRIPT = session_payload.guard()
LEFT = (
    "ls -d /etc/systemd/system/specctl-guard* /etc/systemd/system/*/specctl-guard* {folder}/guard 2>/dev/null; "
    "systemctl list-units --all --plain --no-legend 'specctl-guard*'; systemctl list-unit-files --no-legend 'specctl-guard*'; "
    "echo nothing else"
)


@dataclass(slots=True)
class Guarded:
    """A server that runs release 1 with algo none, and an operator's session that holds the lease."""

    server: Deployed

    def call(self, op: str, **more: object) -> Mapping[str, object]:
        """Run an op as the operator."""
        return self.server.call(op, **more)

    def arm(self, *, back: tuple[str, str] | None = ("1", "none"), **limits: float) -> Mapping[str, object]:
        """Arm the guard for a switch to dflash."""
        times = {"hard_s": LONG_S, "confirm_s": LONG_S, "load_s": 20.0, "stop_s": 10.0, **limits}
        return self.call(
            "guard.arm",
            host="gpu1",
            act="switch",
            who="ann@desk",
            aim={"id": "1", "algo": "dflash"},
            back={"id": back[0], "algo": back[1]} if back else None,
            script=SCRIPT,
            sha256=hashlib.sha256(SCRIPT.encode()).hexdigest(),
            **times,
        )

    def switch(self) -> None:
        """Put dflash in the place of what runs."""
        self.call("release.activate", id="1", algo="dflash")
        self.call("unit.stop", timeout_s=10)
        self.call("unit.start")

    def leave(self) -> None:
        """End the operator's session; its lease ends by itself 5 s after its last renewal."""
        self.server.session.close()

    def state(self) -> Mapping[str, object]:
        """Return the guard's state as it lies on the host; empty where there is none."""
        with contextlib.suppress(FileNotFoundError):
            found = json.loads(self.server.machine.read(STATE))
            assert isinstance(found, dict)
            return found
        return {}

    def wait_phase(self, phase: str) -> None:
        """Wait until the guard does so."""
        until(lambda: self._phase() == phase, within_s=60.0, what=f"the guard is {phase}")

    def _phase(self) -> object:
        try:
            return self.state().get("phase")
        except (FleetError, ValueError, OSError):  # the host is on its way down or up
            return None

    def wait_over(self, within_s: float = 60.0) -> None:
        """Wait until nothing of the guard is left: no unit, timer, file or lease."""
        until(self._gone, within_s=within_s, what="the guard is gone")

    def _gone(self) -> bool:
        try:
            machine = self.server.machine
            if not machine.is_running or machine.console(["test", "-e", f"{DIR}/lock"]).returncode != 1:
                return False
            left = machine.console(["sh", "-c", LEFT.format(folder=DIR)])
            return left.stdout == "nothing else\n"
        except (FleetError, subprocess.SubprocessError):
            return False

    def serving(self) -> str | None:
        """Return the algo that runs by its own log, None when nothing runs; what a boot would start must be the same."""
        machine = self.server.machine
        if machine.console(["systemctl", "is-active", "--quiet", UNIT]).returncode != 0:
            return None
        pid = machine.output(["systemctl", "show", "--value", "-p", "MainPID", UNIT]).strip()
        algo = machine.read(f"/proc/{pid}/cmdline").decode().rstrip("\0").split("\0")[-1]
        current = PurePosixPath(machine.output(["readlink", f"{DIR}/current"]).strip()).stem
        assert current == algo
        return algo

    def invocation(self) -> str:
        """Return the id of the start that runs."""
        return self.server.machine.output(["systemctl", "show", "--value", "-p", "InvocationID", UNIT]).strip()

    def records(self) -> list[dict[str, object]]:
        """Return the host's records."""
        shown = self.server.machine.console(["cat", f"{DIR}/records.jsonl"])
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def ends(self) -> list[tuple[object, object, object]]:
        """Return who ended what how, by the host's records."""
        return [(row["who"], row["result"], row["serving"]) for row in self.records()]


ROLLED_BACK = ("guard", "rolled back", ["1", "none"])
STOPPED = ("guard", "stopped: no healthy release", None)


def server_of(deployed: Deployed, *, none: str = "", dflash: str = "") -> Guarded:
    """Deploy a server whose two algos take these options, and let it run none."""
    deployed.write("1", none=f"{none} --text none", dflash=f"{dflash} --text dflash")
    deployed.start("1", "none")
    return Guarded(deployed)


@pytest.fixture
def deployed(fresh_fleet: fleets.Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A host that specctl has never seen, with a session on it that holds the lease."""
    monkeypatch.setenv(CONFIG_VARIABLE, str(fresh_fleet.operator.config))
    with Session(fresh_fleet) as session:
        made = Deployed(fresh_fleet.hosts["gpu1"], session)
        made.lease()
        yield made


def test_what_nobody_confirms_is_taken_back(deployed: Deployed) -> None:
    """The operator goes away during the load: the new server may come up, but after the confirm deadline the old one serves."""
    guarded = server_of(deployed, dflash="--ready-after 8")
    guarded.arm(confirm_s=3.0)
    guarded.switch()
    guarded.leave()
    guarded.wait_over()
    assert guarded.serving() == "none"
    assert guarded.ends() == [ROLLED_BACK]
    (record,) = guarded.records()
    assert (record["act"], record["release"], record["algo"], record["previous"]) == (
        "switch",
        "1",
        "dflash",
        ["1", "none"],
    )
    assert record["cause"] == "ann@desk was gone; it was ready, but nobody confirmed it within 3 s"
    assert isinstance(record["load_s"], float)
    diary = deployed.machine.output(["journalctl", "-q", "-o", "cat", "-u", f"{GUARD}.service"])
    assert f"taking it back: {record['cause']}" in diary
    assert diary.count("Starting ") == 0, diary


def test_a_first_deploy_is_stopped(deployed: Deployed) -> None:
    """With nothing to go back to, the server is stopped and taken off, so that no boot starts it."""
    deployed.write("1", none="--text none", dflash="--text dflash")
    guarded = Guarded(deployed)
    guarded.arm(back=None, confirm_s=2.0)
    guarded.switch()
    guarded.leave()
    guarded.wait_over()
    shown = deployed.machine.output(["systemctl", "show", "-p", "LoadState", "--value", UNIT]).strip()
    assert (shown, guarded.ends()) == ("not-found", [STOPPED])
    assert deployed.machine.console(["test", "-e", f"{DIR}/current"]).returncode == 1


def test_a_dead_server_is_taken_back_at_once(deployed: Deployed) -> None:
    """A new server that dies while nobody looks is not waited for, though every deadline is far."""
    guarded = server_of(deployed, dflash="--ready-after 600 --die-after 4")
    guarded.arm()
    guarded.switch()
    guarded.leave()
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])
    assert "died" in str(guarded.records()[0]["cause"]) or "not running" in str(guarded.records()[0]["cause"])


def test_what_was_not_changed_is_not_restarted(deployed: Deployed) -> None:
    """The operator is gone while it drains: the old server goes on with the same process."""
    guarded = server_of(deployed)
    before = guarded.invocation()
    guarded.arm()
    guarded.leave()
    guarded.wait_over()
    assert (guarded.invocation(), guarded.serving()) == (before, "none")
    assert guarded.ends() == [("guard", "failed", ["1", "none"])]


def test_a_swap_without_a_stop_costs_no_restart(deployed: Deployed, fresh_fleet: fleets.Fleet) -> None:
    """Gone between the activation and the stop: the old process is kept, and the host shows no drift."""
    guarded = server_of(deployed)
    before = guarded.invocation()
    guarded.arm()
    guarded.call("release.activate", id="1", algo="dflash")
    guarded.leave()
    guarded.wait_over()
    assert (guarded.invocation(), guarded.serving(), guarded.ends()) == (before, "none", [ROLLED_BACK])
    with Session(fresh_fleet) as session:
        assert Deployed(deployed.machine, session).facts()["warnings"] == []


def test_a_stop_without_a_start_is_mended(deployed: Deployed) -> None:
    """Gone between the stop and the start: the old server is started at once."""
    guarded = server_of(deployed)
    guarded.arm()
    guarded.call("release.activate", id="1", algo="dflash")
    guarded.call("unit.stop", timeout_s=10)
    guarded.leave()
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])


def test_the_hard_deadline_holds_against_a_living_operator(deployed: Deployed) -> None:
    """An operator that hangs with its lease alive is overtaken; its ops are refused, and the refusal names the guard."""
    guarded = server_of(deployed, none="--ready-after 4", dflash="--ready-after 600")
    guarded.arm(hard_s=8.0)
    guarded.switch()
    guarded.wait_phase("gating")
    with pytest.raises(LockHeldError, match="guard holds it now"):
        guarded.call("unit.start")
    with pytest.raises(LockHeldError, match="locked by guard"):
        guarded.call("lease.acquire", owner="bob", ttl_s=5)
    with pytest.raises(LockHeldError):
        guarded.call("guard.disarm", record={"act": "switch", "result": "done"})
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])
    assert guarded.records()[0]["cause"] == "nobody confirmed it within 8 s"


def test_a_reboot_in_the_load_takes_it_back(deployed: Deployed) -> None:
    """The host restarts while the new server loads: the boot starts it, and the guard, which puts the old one back."""
    guarded = server_of(deployed, dflash="--ready-after 600")
    guarded.arm()
    guarded.switch()
    deployed.machine.reboot()
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])
    assert guarded.records()[0]["cause"] == "the host was restarted and ann@desk was gone"


def test_a_power_cut_while_it_restores_is_survived(deployed: Deployed) -> None:
    """The plug is pulled while the old server loads again: after the boot the guard goes on, and records once."""
    guarded = server_of(deployed, none="--ready-after 6", dflash="--ready-after 600")
    guarded.arm(hard_s=1.0)
    guarded.switch()
    guarded.wait_phase("gating")
    deployed.machine.kill()
    deployed.machine.boot()
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])


@pytest.mark.parametrize("ended", ["at once", "after a while"])
def test_a_killed_guard_goes_on(deployed: Deployed, ended: str) -> None:
    """Every tick of the guard is killed for a while, wherever it is: once left alone it comes to the same end."""
    guarded = server_of(deployed, none="--ready-after 2", dflash="--ready-after 600 --deaf")
    guarded.arm(hard_s=1.0, stop_s=3.0)
    guarded.switch()
    wait = "" if ended == "at once" else "sleep 1.3;"
    murder = (
        "n=0; while [ $n -lt 5 ]; do "
        f"if [ $(systemctl show --value -p ActiveState {GUARD}.service) = activating ]; then {wait} "
        f"systemctl kill --signal=KILL {GUARD}.service && n=$((n+1)); sleep 0.3; fi; done"
    )
    deployed.machine.output(["sh", "-c", murder])
    guarded.wait_over(within_s=120.0)
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])


def test_an_old_server_that_does_not_come_is_stopped(deployed: Deployed) -> None:
    """When what was there before dies too, the server is stopped and recorded: exactly one end."""
    guarded = server_of(deployed, none="--ready-after 600", dflash="--ready-after 600")
    guarded.arm(hard_s=1.0, load_s=4.0)
    guarded.switch()
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == (None, [STOPPED])
    assert deployed.machine.console(["systemctl", "is-enabled", UNIT]).stdout.strip() == "disabled"
    assert "release 1, none was not ready within 4 s" in str(guarded.records()[0]["cause"])


def test_a_damaged_release_is_not_put_back(deployed: Deployed) -> None:
    """A release to go back to that is no longer whole is tried, then the server is stopped."""
    guarded = server_of(deployed, dflash="--ready-after 600")
    guarded.arm(hard_s=6.0)
    guarded.switch()
    deployed.machine.put(f"{DIR}/releases/1/none.service", b"[Service]\nExecStart=/bin/false\n")
    guarded.wait_over()
    assert deployed.machine.console(["systemctl", "is-active", "--quiet", UNIT]).returncode != 0
    assert guarded.ends() == [STOPPED]
    assert "could not be put back" in str(guarded.records()[0]["cause"])


def test_a_confirm_removes_everything(deployed: Deployed) -> None:
    """The confirm writes the record, and no timer, unit or file is left; the new server stays, for good."""
    guarded = server_of(deployed)
    guarded.arm()
    shown = deployed.machine.output(["systemctl", "is-enabled", f"{GUARD}.timer"]).strip()
    assert shown == "enabled"
    guarded.switch()
    guarded.call("guard.disarm", record={"who": "ann", "result": "done", "serving": ["1", "dflash"]})
    guarded.call("lease.release")
    guarded.wait_over(within_s=0.5)
    assert (guarded.serving(), guarded.ends()) == ("dflash", [("ann", "done", ["1", "dflash"])])


def test_a_confirm_that_was_cut_short_is_ended_by_the_guard(deployed: Deployed) -> None:
    """Confirmed but not yet removed when the operator died: the record is there once, nothing is taken back."""
    guarded = server_of(deployed)
    guarded.arm(confirm_s=0.5, hard_s=1.0)
    deployed.machine.output(["systemctl", "stop", f"{GUARD}.timer", f"{GUARD}.service"])
    guarded.switch()
    record = {"who": "ann", "result": "done", "serving": ["1", "dflash"]}
    marked = {**guarded.state(), "phase": "confirmed", "record": record}
    deployed.machine.put(STATE, json.dumps(marked).encode(), mode=0o600)
    guarded.leave()
    deployed.machine.reboot()
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("dflash", [("ann", "done", ["1", "dflash"])])


def test_another_operator_takes_over(deployed: Deployed, fresh_fleet: fleets.Fleet) -> None:
    """The next deploy finds the guard of a dead one, arms it as its own, and its confirm counts."""
    guarded = server_of(deployed)
    guarded.arm(confirm_s=60.0)
    guarded.switch()
    guarded.leave()
    with Session(fresh_fleet) as session:
        second = Guarded(Deployed(deployed.machine, session))
        until(
            lambda: second.call("lease.status")["lease"] is None, within_s=20.0, what="the dead operator's lease ends"
        )
        armed = second.server.facts()["guard"]
        assert isinstance(armed, dict)
        assert (armed["phase"], armed["who"], armed["back"]) == ("watching", "ann@desk", {"id": "1", "algo": "none"})
        second.server.lease()
        took = second.arm()["took_over"]
        assert isinstance(took, dict)
        second.call("guard.disarm", record={"who": "bob", "result": "done", "serving": ["1", "dflash"]})
        second.call("lease.release")
        second.wait_over(within_s=0.5)
        assert (second.serving(), second.ends()) == ("dflash", [("bob", "done", ["1", "dflash"])])


def test_a_persons_lock_keeps_the_guard_away(deployed: Deployed, fresh_fleet: fleets.Fleet) -> None:
    """Somebody who locks the server by hand has it: the guard waits, and goes on once the lock is released."""
    guarded = server_of(deployed)
    guarded.arm(confirm_s=1.0, hard_s=6.0)
    guarded.switch()
    guarded.leave()
    with Session(fresh_fleet) as session:
        second = Guarded(Deployed(deployed.machine, session))
        second.call("lease.acquire", owner="bob", ttl_s=None, steal=True)
        seen = guarded.state()["seen_s"]
        until(lambda: float(str(guarded.state()["hard_left_s"])) < 0, within_s=30.0, what="a tick after the deadline")
        assert (guarded.state()["phase"], guarded.serving()) == ("watching", "dflash")
        assert guarded.state()["seen_s"] != seen
        second.server.session.call("lease.release", {"dir": str(DIR)})
    guarded.wait_over()
    assert (guarded.serving(), guarded.ends()) == ("none", [ROLLED_BACK])


def test_a_read_only_etc_refuses_before_anything_is_changed(deployed: Deployed) -> None:
    """Where the guard cannot be armed the deploy ends there: the old server never notices, nothing is left."""
    guarded = server_of(deployed)
    before = guarded.invocation()
    deployed.machine.output(["mount", "--bind", "-o", "ro", "/etc/systemd/system", "/etc/systemd/system"])
    try:
        with pytest.raises(RemoteCommandError, match="read-only"):
            guarded.arm()
    finally:
        deployed.machine.output(["umount", "/etc/systemd/system"])
    assert guarded.invocation() == before
    assert guarded.state() == {}


def test_a_changed_program_is_not_run(deployed: Deployed) -> None:
    """A guard whose file was changed says so in place of running it."""
    guarded = server_of(deployed)
    guarded.arm()
    program = deployed.machine.read(f"{DIR}/guard/guard.py").decode()
    spoilt = program.replace('b85decode("', 'b85decode("00000', 1)
    deployed.machine.put(f"{DIR}/guard/spoilt.py", spoilt.encode(), mode=0o755)
    words = [f"{DIR}/guard/spoilt.py", str(DIR), "k26", "/etc/systemd/system"]
    run = deployed.machine.console(["python3", "-I", "-S", *words])
    assert (run.returncode, "this file was changed" in run.stderr) == (1, True)
