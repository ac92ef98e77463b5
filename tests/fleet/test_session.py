"""The session on a real systemd host over real SSH: a server's whole life, and what survives the operator."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from specctl.adapters.connect import open_transport
from specctl.adapters.session import HostSession
from specctl.adapters.ssh_resolve import CONFIG_VARIABLE
from specctl.errors import ConnectError, LockHeldError, RemoteCommandError
from specctl.fleet.types import Host, Via
from specctl.rollout.observation import Observation, Port
from tests.fleet import fleet as fleets
from tests.fleet import host as machines
from tests.fleet.enclosure import CHECKOUT
from tests.fleet.waiting import until
from tests.unit.host.conftest import Looks, release_args

ENGINE = CHECKOUT / "tests" / "unit" / "host" / "engine.py"
DIR = Path("/var/lib/specctl/k26")
UNIT = "specctl-k26.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
PORT = 30001
# The session ends after 30 s without a word from its operator.
SILENCE_S = 60.0


@dataclass(slots=True)
class Deployed:
    """A server on a systemd host, and the session that acts on it."""

    machine: machines.Host
    session: HostSession
    token: int = 0

    @property
    def args(self) -> dict[str, object]:
        """The arguments that every op on the server takes."""
        manager = {"kind": "systemd", "unit": UNIT}
        named = {"server": "k26", "dir": str(DIR), "port": PORT, "bind": "0.0.0.0", "token": self.token}
        return {**named, "manager": manager}

    def call(self, op: str, **more: object) -> Mapping[str, object]:
        """Run an op."""
        return self.session.call(op, {**self.args, **more}, timeout_s=60)

    def lease(self, **more: object) -> None:
        """Take the lease."""
        token = self.call("lease.acquire", owner="tester", ttl_s=5, **more)["token"]
        assert isinstance(token, int)
        self.token = token

    def write(self, release: str, **options: str) -> None:
        """Write a release: each keyword is an algo and its engine's options."""
        texts = {f"{algo}.service": _unit(words) for algo, words in options.items()}
        self.session.call("release.write", release_args(DIR, release, texts, self.token))

    def start(self, release: str, algo: str = "none") -> Mapping[str, object]:
        """Activate and start; returns the unit's state."""
        self.call("release.activate", id=release, algo=algo)
        unit = self.call("unit.start")["unit"]
        assert isinstance(unit, Mapping)
        return unit

    def facts(self) -> Mapping[str, object]:
        """Return the server's facts."""
        servers = self.session.call("facts", {"servers": [{**self.args, "name": "k26"}]}, timeout_s=60)["servers"]
        assert isinstance(servers, list)
        found = servers[0]
        assert isinstance(found, dict)
        return found

    def watch(self, **more: object) -> Looks:
        """Return a watch of the server."""
        return Looks(self.session, {**self.args, "period_s": 0.2, **more})


def _unit(options: str) -> str:
    return (
        f"[Service]\nType=exec\nExecStart=/usr/bin/python3 -S {ENGINE} {PORT} {options}\nKillMode=mixed\nRestart=on-failure\n"
        "RestartSec=1\nTimeoutStopSec=60\n[Install]\nWantedBy=multi-user.target\n"
    )


def _ready(look: Observation) -> bool:
    return look.ready == 200


@pytest.fixture
def deployed(fresh_fleet: fleets.Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A host that specctl has never seen, with a session on it that holds the lease."""
    monkeypatch.setenv(CONFIG_VARIABLE, str(fresh_fleet.operator.config))
    with Session(fresh_fleet) as session:
        made = Deployed(fresh_fleet.hosts["gpu1"], session)
        made.lease()
        yield made


class Session:
    """A session on gpu1 as the operator would have it."""

    def __init__(self, fleet: fleets.Fleet, *, user: str | None = None, sudo: bool = False) -> None:
        host = Host(name="gpu1", via=Via.SSH, user=user, sudo=sudo)
        with fleet.entered():
            self._transport = open_transport(host)
            self._session = HostSession(self._transport)

    def __enter__(self) -> HostSession:
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._transport.close()


def test_a_server_lives_and_goes(deployed: Deployed) -> None:
    """Written, started, ready, enabled, stopped with its children, removed: nothing of it is left but its records."""
    deployed.write("1", none="--child --ready-after 1.0 --text hello")
    unit = deployed.start("1")
    with deployed.watch(invocation=unit["invocation"]).going() as looks:
        looks.when(lambda look: look.ready == 503, "not ready")
        looks.when(_ready, "ready")
        looks.when(lambda look: look.processes == 2 and look.read_bytes is not None, "figures of both processes")
        looks.when(lambda _: "hello" in looks.lines(), "its log")
    state = deployed.call("unit.state")
    facts = deployed.facts()
    stopped = deployed.call("unit.stop", timeout_s=20)
    removed = deployed.call("unit.disable_remove", purge=True)
    ready = next(look for _, look in looks.seen if look.ready == 200)
    lines = [line for line in looks.lines() if line.startswith(("Load", "shards", "hello"))]
    assert (ready.port, ready.unit.restarts, ready.unit.invocation) == (Port.OWN, 0, unit["invocation"])
    assert lines == ["Load weight begin.", "shards: 0%", "shards: 50%", "shards: 100%", "hello"]
    assert (state["enabled"], state["needs_reload"], len(state["pids"])) == ("enabled", False, 2)  # type: ignore[arg-type]  # a list
    assert (facts["drift"], facts["warnings"], facts["releases"]) == (False, [], ["1"])
    assert stopped["killed"] is False
    assert UNIT_FILE in str(removed["removed"])
    left = deployed.machine.output(
        ["sh", "-c", f"ls -A {DIR}; ls /etc/systemd/system/*.wants; systemctl list-units --all"]
    )
    assert "specctl-k26" not in left
    assert "releases" not in left


def test_death_is_told_at_once(deployed: Deployed) -> None:
    """A killed engine is an event within 0.5 s, its status within 1 s, and the restart is another invocation."""
    deployed.write("1", none="")
    unit = deployed.start("1")
    with deployed.watch().going() as looks:
        looks.when(_ready, "ready")
        killed = time.monotonic()
        deployed.machine.console(["kill", "-KILL", str(unit["main_pid"])])
        gone = looks.when(lambda look: look.unit.main_pid != unit["main_pid"], "the death")
        told = looks.when(lambda look: look.unit.exit_status == 137, "the status")
        looks.when(lambda look: look.unit.restarts == 1 and look.unit.invocation != unit["invocation"], "the restart")
    assert gone - killed < 0.5 + 0.5  # the console takes its part
    assert told - killed < 1.5


def test_a_reboot_starts_what_is_current(deployed: Deployed, fresh_fleet: fleets.Fleet) -> None:
    """After a reboot the current release runs, without drift; the automatic lease is free, a manual lock is not."""
    deployed.write("1", none="", dflash="--text chained")
    deployed.start("1", "none")
    deployed.call("release.activate", id="1", algo="dflash")
    before = deployed.facts()
    deployed.lease(steal=True)
    deployed.machine.reboot()
    with Session(fresh_fleet) as session:
        again = Deployed(deployed.machine, session)
        until(lambda: again.facts()["port"] == "own", within_s=20, what="the engine after the reboot")
        after = again.facts()
        again.call("lease.acquire", owner="other", ttl_s=None)
        again.machine.reboot()
    with Session(fresh_fleet) as session, pytest.raises(LockHeldError, match="locked by other"):
        Deployed(deployed.machine, session).lease()
    current = after["current"]
    assert isinstance(current, dict)
    assert (before["drift"], before["warnings"]) == (
        True,
        ["the running process began before the current release was activated"],
    )
    assert (current["algo"], after["drift"], after["lease"]) == ("dflash", False, None)


def test_a_hand_edited_unit_is_drift(deployed: Deployed) -> None:
    """A unit file that was changed or removed by hand is named, and the next activation mends it."""
    deployed.write("1", none="")
    deployed.start("1")
    deployed.machine.output(["sh", "-c", f"echo '# mine' >> {UNIT_FILE}"])
    edited = deployed.facts()
    deployed.call("release.activate", id="1", algo="none")
    assert edited["drift"] is True
    assert "the unit file differs from the current release" in str(edited["warnings"])
    assert deployed.machine.read(UNIT_FILE).decode() == _unit("")


def test_a_masked_unit_is_refused(deployed: Deployed) -> None:
    """Somebody's mask is not overwritten: the error says how to take it away."""
    deployed.machine.output(["systemctl", "mask", UNIT])
    deployed.write("1", none="")
    with pytest.raises(RemoteCommandError, match="is masked") as caught:
        deployed.call("release.activate", id="1", algo="none")
    assert caught.value.hint == f"systemctl unmask {UNIT}"


def test_a_program_that_does_not_start_is_an_error(deployed: Deployed) -> None:
    """A unit whose program is missing fails the start in systemd's words, again and again (no start limit in the way)."""
    deployed.write("1", none="")
    text = _unit("").replace("/usr/bin/python3", "/no/python3")
    deployed.session.call("release.write", release_args(DIR, "2", {"none.service": text}, deployed.token))
    deployed.call("release.activate", id="2", algo="none")
    for _ in range(7):
        with pytest.raises(RemoteCommandError, match=f"systemctl start {UNIT}"):
            deployed.call("unit.start")
    assert deployed.start("1")["active"] == "active"


def test_a_server_that_was_never_there_is_stopped_already(deployed: Deployed) -> None:
    """Stopping what systemd does not know is no error."""
    assert deployed.call("unit.stop", timeout_s=5)["processes"] == []


def test_a_full_disk_is_a_plain_error_and_costs_no_lease(deployed: Deployed) -> None:
    """A release that does not fit is refused in words, leaves nothing, and the lease is renewed all the same."""
    deployed.call("lease.release")
    deployed.machine.output(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(DIR)])
    try:
        deployed.lease()
        args = release_args(DIR, "1", {"none.service": "x" * 200_000}, deployed.token)
        with pytest.raises(RemoteCommandError, match="no space left on device") as caught:
            deployed.session.call("release.write", args)
        deployed.machine.output(["sh", "-c", f"cat /dev/zero > {DIR}/filler || true"])
        expiry = deployed.machine.read(f"{DIR}/lock")
        until(lambda: deployed.machine.read(f"{DIR}/lock") != expiry, within_s=10, what="a renewal on the full disk")
        listed = deployed.call("release.list")
    finally:
        deployed.machine.output(["umount", str(DIR)])
    assert caught.value.hint == "free some space there and run the command again"
    assert listed["releases"] == []


def test_a_read_only_unit_folder_changes_nothing(deployed: Deployed) -> None:
    """When the unit file cannot be written, the error names it and what is current stays current, without drift."""
    deployed.write("1", none="", dflash="--text chained")
    deployed.start("1")
    deployed.machine.output(["mount", "--bind", "/etc/systemd/system", "/etc/systemd/system"])
    deployed.machine.output(["mount", "-o", "remount,ro,bind", "/etc/systemd/system"])
    try:
        with pytest.raises(RemoteCommandError, match="read-only file system"):
            deployed.call("release.activate", id="1", algo="dflash")
    finally:
        deployed.machine.output(["umount", "/etc/systemd/system"])
    facts = deployed.facts()
    current = facts["current"]
    assert isinstance(current, dict)
    assert (current["algo"], facts["drift"], facts["warnings"]) == ("none", False, [])


def test_a_deaf_engine_is_killed(deployed: Deployed) -> None:
    """An engine that ignores SIGTERM is killed after our limit, though systemd's own is far away."""
    deployed.write("1", none="--deaf --child")
    deployed.start("1")
    until(lambda: deployed.call("unit.state")["port"] == "own", within_s=20, what="the engine's port")
    began = time.monotonic()
    stopped = deployed.call("unit.stop", timeout_s=1)
    state = deployed.call("unit.state")
    assert stopped["killed"] is True
    assert isinstance(state["unit"], dict)
    assert state["unit"]["active"] == "inactive"  # it was stopped on purpose, so it has not failed
    assert time.monotonic() - began < 10
    assert (state["pids"], state["port"]) == ([], "refused")


def test_an_ordinary_user_acts_through_sudo(fresh_fleet: fleets.Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sudo the session runs as root, and the server can be deployed by a user who is not."""
    monkeypatch.setenv(CONFIG_VARIABLE, str(fresh_fleet.operator.config))
    fresh_fleet.hosts["gpu1"].allow_sudo()
    with Session(fresh_fleet, user="ops", sudo=True) as session:
        made = Deployed(fresh_fleet.hosts["gpu1"], session)
        made.lease()
        made.write("1", none="")
        assert session.hello["uid"] == 0
        assert made.start("1")["active"] == "active"


def test_a_killed_session_leaves_no_journalctl_and_the_unit(deployed: Deployed) -> None:
    """After kill -9 of the session, its journalctl goes too, and the engine runs on."""
    deployed.write("1", none="")
    deployed.start("1")
    looks = deployed.watch()
    thread = threading.Thread(target=looks._run)
    thread.start()
    until(lambda: any(look.ready == 200 for _, look in looks.seen), within_s=20, what="ready")
    deployed.machine.console(["kill", "-KILL", str(deployed.session.hello["pid"])])
    thread.join(20)
    assert isinstance(looks.errors.get_nowait(), ConnectError)
    until(lambda: deployed.machine.console(["pgrep", "journalctl"]).returncode == 1, within_s=20, what="no journalctl")
    assert deployed.machine.output(["systemctl", "is-active", UNIT]).strip() == "active"


def test_watching_costs_little(deployed: Deployed) -> None:
    """Watching a server that is ready, systemctl and journalctl included, takes under 3 % of a processor core."""
    deployed.write("1", none="")
    deployed.start("1")
    pid = deployed.session.hello["pid"]
    with deployed.watch().going() as looks:
        looks.when(_ready, "ready")
        count, began, before = len(looks.seen), time.monotonic(), _cpu_s(deployed.machine, pid)
        until(lambda: len(looks.seen) >= count + 10, within_s=30, what="ten more looks")
        share = (_cpu_s(deployed.machine, pid) - before) / (time.monotonic() - began)
    assert share < 0.03


def _cpu_s(machine: machines.Host, pid: object) -> float:
    """Return the processor time of a process and of its children that have ended."""
    fields = machine.read(f"/proc/{pid}/stat").decode().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def test_a_cut_cable_frees_the_lease_and_leaves_the_unit(deployed: Deployed, fresh_fleet: fleets.Fleet) -> None:
    """When the connection is cut without a word, our end says so, the host's session ends by itself and its lease runs out."""
    deployed.write("1", none="")
    deployed.start("1")
    session = f"/proc/{deployed.session.hello['pid']}"
    deployed.machine.cut()
    with pytest.raises(ConnectError, match="has not answered"):
        deployed.session.call("logs", {**deployed.args, "follow": True}, timeout_s=SILENCE_S)
    gone = ["test", "!", "-e", session]
    until(lambda: deployed.machine.console(gone).returncode == 0, within_s=SILENCE_S, what="the session's end")
    deployed.machine.mend()
    with Session(fresh_fleet) as again:
        until(lambda: Deployed(deployed.machine, again).facts()["lease"] is None, within_s=20, what="a free lease")
    assert deployed.machine.output(["systemctl", "is-active", UNIT]).strip() == "active"
