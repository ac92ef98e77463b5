"""The promises that other tests on real hosts stand on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fleet import cgroups, keys, limits, state
from tests.fleet import fleet as fleets
from tests.fleet.enclosure import CHECKOUT
from tests.fleet.waiting import FleetError, until

# A fleet in a process of its own, to be killed: says on stdout what it is made of, then waits.
VICTIM = """
import json, sys
from tests.fleet import fleet, state
made = fleet.up(1, name=sys.argv[1], lifeline=True)
print(json.dumps([made.enclosure.holder_pid, made.enclosure.room_pid]), flush=True)
sys.stdin.read()
"""


def _mounts() -> str:
    return Path("/proc/self/mounts").read_text()


def _cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.fleet", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def victim() -> subprocess.Popen[str]:
    """Start a process that brings a fleet of its own up and waits."""
    return subprocess.Popen(
        [sys.executable, "-c", VICTIM, f"victim-{os.getpid()}"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_host_answers_by_ssh_with_its_key_checked(fresh_fleet: fleets.Fleet) -> None:
    """Each host answers under its own name, and its key is the known one."""
    answers = {name: host.ssh(["hostname"]).stdout.strip() for name, host in fresh_fleet.hosts.items()}

    assert answers == {name: name for name in fresh_fleet.hosts}


def test_a_changed_host_key_is_refused_until_fresh(fresh_fleet: fleets.Fleet) -> None:
    """A host with another key than the known one gets no command, and `fresh` gives it its own again."""
    host = fresh_fleet.hosts["gpu1"]

    host.change_key()
    refused = host.ssh("true")
    host.fresh()

    assert refused.returncode == 255
    assert "Host key verification failed" in refused.stderr
    assert host.ssh("true").returncode == 0


def test_an_unknown_host_is_refused_until_trusted(fresh_fleet: fleets.Fleet) -> None:
    """A host that known_hosts lacks gets no command, and `trust_hosts` makes it known again."""
    own = state.folder(fresh_fleet.name) / "keys"
    host = fresh_fleet.hosts["gpu1"]

    fresh_fleet.operator.trust({"gpu2": keys.read(own / "gpu2")})
    refused = host.ssh("true")
    fresh_fleet.trust_hosts()

    assert refused.returncode == 255
    assert host.ssh("true").returncode == 0


def test_a_cut_host_is_unreachable_until_mended(fresh_fleet: fleets.Fleet) -> None:
    """Without its cable a host does not answer by SSH but lives on; with it, it answers in the same boot."""
    host = fresh_fleet.hosts["gpu1"]
    boot = host.boot_id()

    host.cut()
    unreachable = host.ssh("true")
    lives = host.console(["hostname"]).stdout.strip()
    host.mend()

    assert (unreachable.returncode, lives) == (255, "gpu1")
    assert host.ssh(["cat", "/proc/sys/kernel/random/boot_id"]).stdout.strip() == boot


def test_a_cut_host_stays_cut_through_a_reboot(fresh_fleet: fleets.Fleet) -> None:
    """A reboot makes a new cable, and that one is cut too."""
    host = fresh_fleet.hosts["gpu2"]

    host.cut()
    host.reboot()
    unreachable = host.ssh("true")
    host.mend()

    assert unreachable.returncode == 255
    assert host.ssh("true").returncode == 0


def test_a_slow_host_answers_late(fresh_fleet: fleets.Fleet) -> None:
    """Every packet to and from a slow host takes the delay, a long answer arrives whole, and mending ends it."""
    host = fresh_fleet.hosts["gpu1"]
    ping = [sys.executable, "-c", CONNECT, host.address]

    host.slow(100)
    slow_ms = float(fresh_fleet.run(ping).stdout)
    long_answer = host.ssh("head -c 3000000 /dev/zero | tr '\\0' x")
    host.mend()
    normal_ms = float(fresh_fleet.run(ping).stdout)

    assert normal_ms < 200 <= slow_ms < 1000
    assert long_answer.stdout == "x" * 3_000_000


# Prints the milliseconds of a TCP handshake: one round trip (ARP is known after the first connection).
CONNECT = """
import socket, sys, time
socket.create_connection((sys.argv[1], 22), timeout=10).close()
begin = time.monotonic()
socket.create_connection((sys.argv[1], 22), timeout=10).close()
print((time.monotonic() - begin) * 1000)
"""


def test_a_reboot_changes_the_boot_and_keeps_the_disk(fresh_fleet: fleets.Fleet) -> None:
    """After a reboot the boot id differs, files and the old boot's journal are there."""
    host = fresh_fleet.hosts["gpu1"]
    before = host.boot_id()
    host.put("/var/lib/specctl/kept", b"kept \x00\xff")
    host.output(["systemd-cat", "--identifier=mark", "echo", "said before"])

    host.reboot()

    assert host.boot_id() != before
    assert host.read("/var/lib/specctl/kept") == b"kept \x00\xff"
    assert host.output(["journalctl", "--identifier=mark", "--output=cat"]) == "said before\n"


def test_a_pulled_plug_ends_everything_and_keeps_the_disk(fresh_fleet: fleets.Fleet) -> None:
    """A killed host runs nothing and answers nothing; switched on, it boots anew with its files."""
    host = fresh_fleet.hosts["gpu1"]
    before = host.boot_id()
    host.put("/var/lib/specctl/kept", b"kept")

    host.kill()
    off = (host.is_running, host.ssh("true").returncode)
    host.boot()

    assert off == (False, 255)
    assert host.boot_id() != before
    assert host.read("/var/lib/specctl/kept") == b"kept"


def test_fresh_forgets_units_state_sudo_and_journal(fresh_fleet: fleets.Fleet) -> None:
    """A fresh host has no unit, process, file, right or log line that a test left."""
    host = fresh_fleet.hosts["gpu1"]
    host.put(
        "/etc/systemd/system/specctl-left.service", b"[Service]\nExecStart=/bin/sh -c 'echo left; exec sleep 1000'\n"
    )
    host.put("/var/lib/specctl/left/state", b"left")
    host.allow_sudo()
    allowed = host.ssh("sudo -n id -un", user="ops").stdout
    host.output(["systemctl", "daemon-reload"])
    host.output(["systemctl", "start", "specctl-left"])
    host.ssh("nohup sleep 2000 >/dev/null 2>&1 &")

    host.fresh()

    assert allowed == "root\n"
    assert host.ssh("sudo -n id -un", user="ops").returncode != 0
    assert host.output(["systemctl", "show", "--value", "--property=LoadState", "specctl-left"]) == "not-found\n"
    assert host.console(["pgrep", "--exact", "sleep"]).stdout == ""
    assert host.console(["test", "-e", "/var/lib/specctl"]).returncode == 1
    assert host.console(["journalctl", "--unit=specctl-left", "--output=cat", "--quiet"]).stdout == ""


def test_hosts_share_the_checkout_read_only(fresh_fleet: fleets.Fleet) -> None:
    """The checkout's interpreter runs on a host with its packages, for ordinary users too, and nobody there can change it."""
    host = fresh_fleet.hosts["gpu1"]

    version = host.ssh([sys.executable, "-c", "import pytest; print(pytest.__version__)"], user="ops").stdout.strip()
    written = host.console(["touch", str(CHECKOUT / "written-by-a-host")])

    assert version == pytest.__version__
    assert written.returncode != 0
    assert not (CHECKOUT / "written-by-a-host").exists()


def test_hosts_count_and_limit_memory(fresh_fleet: fleets.Fleet) -> None:
    """A unit's MemoryMax ends what exceeds it, as on a real host."""
    program = "x = bytearray(200_000_000); x[::4096] = b'x' * len(x[::4096]); print('survived')"

    done = fresh_fleet.hosts["gpu1"].console(
        ["systemd-run", "--quiet", "--wait", "--pipe", "--property=MemoryMax=50M", "python3", "-c", program]
    )

    assert done.returncode != 0
    assert done.stdout == ""


def test_hosts_do_not_share_processes_or_groups(fresh_fleet: fleets.Fleet) -> None:
    """Units of one name on two hosts are two: stopping one leaves the other running."""
    one, other = fresh_fleet.hosts["gpu1"], fresh_fleet.hosts["gpu2"]
    for host in (one, other):
        host.output(["systemd-run", "--quiet", "--unit=specctl-twin", "sleep", "1000"])

    one.output(["systemctl", "stop", "specctl-twin"])

    assert one.console(["systemctl", "is-active", "specctl-twin"]).stdout == "inactive\n"
    assert other.console(["systemctl", "is-active", "specctl-twin"]).stdout == "active\n"


def test_programs_see_the_operators_side(fresh_fleet: fleets.Fleet, tmp_path: Path) -> None:
    """A program that the fleet runs is where it was told to be, reaches hosts by name, and OpenSSH reads the operator's files."""
    where = fresh_fleet.run(
        ["sh", "-c", "pwd; echo $HOME; ssh -G gpu2 | grep ^hostname; ssh gpu2 hostname"], cwd=tmp_path
    )

    assert where.stdout.splitlines() == [str(tmp_path), str(fresh_fleet.home), "hostname 10.77.0.12", "gpu2"]


def test_a_signal_reaches_the_started_program(fresh_fleet: fleets.Fleet) -> None:
    """What `start` returns is the program itself, not a wrapper that would hide its death."""
    program = fresh_fleet.start(["sleep", "1000"])

    until(lambda: Path(f"/proc/{program.pid}/comm").read_text() == "sleep\n", within_s=10, what="the program itself")
    program.send_signal(signal.SIGTERM)

    assert program.wait(timeout=10) == -signal.SIGTERM
    program.communicate()


def test_a_thread_can_enter_the_operators_side(fresh_fleet: fleets.Fleet) -> None:
    """Inside `entered`, the thread, its new threads and its programs reach the hosts; other threads and the time after do not."""
    query = ["ssh", "-G", "gpu1"]
    folder = Path.cwd()
    seen: dict[str, bool] = {}
    inside, looked = threading.Event(), threading.Event()

    def look(who: str) -> None:
        seen[who] = "hostname 10.77.0.11\n" in subprocess.run(query, capture_output=True, text=True, check=True).stdout

    def outsider() -> None:
        inside.wait(10)
        look("another thread")
        looked.set()

    other = threading.Thread(target=outsider)
    other.start()
    with fresh_fleet.entered():
        inside.set()
        look("this thread")
        child = threading.Thread(target=look, args=("a new thread",))
        child.start()
        child.join()
        looked.wait(10)
    other.join()
    look("afterwards")

    assert seen == {"another thread": False, "this thread": True, "a new thread": True, "afterwards": False}
    assert Path.cwd() == folder


def test_a_killed_run_takes_its_fleet_with_it(fresh_fleet: fleets.Fleet, victim: subprocess.Popen[str]) -> None:
    """A kill -9 of the process that holds a fleet ends its hosts and removes its groups and files, with nobody's help."""
    name = f"victim-{os.getpid()}"
    assert victim.stdout is not None
    pids = json.loads(victim.stdout.readline())
    groups = cgroups.places(name)

    victim.kill()
    victim.communicate()

    until(lambda: not any(map(state.is_alive, pids)), within_s=10, what="the end of the fleet")
    assert not state.folder(name).exists()
    assert [group for group in groups if group.exists()] == []


def test_leftovers_of_a_killed_keeper_are_removed_by_the_next_run(
    fresh_fleet: fleets.Fleet, victim: subprocess.Popen[str]
) -> None:
    """When even the keeper is killed, no host outlives it, and the next fleet of any name removes its groups and files."""
    name = f"victim-{os.getpid()}"
    assert victim.stdout is not None
    holder_pid, room_pid = json.loads(victim.stdout.readline())
    groups = cgroups.places(name)

    os.kill(holder_pid, signal.SIGKILL)
    victim.kill()
    victim.communicate()
    until(lambda: not state.is_alive(room_pid), within_s=10, what="the end of the room")
    left = state.folder(name).exists()
    second = fleets.up(1, name=name, lifeline=True)
    answer = second.hosts["gpu1"].ssh("hostname").stdout
    second.down()

    assert left
    assert answer == "gpu1\n"
    assert not state.folder(name).exists()
    assert [group for group in groups if group.exists()] == []


def test_up_status_run_ssh_and_down_leave_nothing_behind(fresh_fleet: fleets.Fleet) -> None:
    """The commands for people do what they say, beside a fleet of tests, and leave no mount, group, file or process."""
    name = f"people-{os.getpid()}"
    mounts, groups = _mounts(), cgroups.places(name)

    up = _cli("--name", name, "up", "-n", "1")
    made = fleets.attach(name)
    status = json.loads(_cli("--name", name, "status", "--json").stdout)
    asked = _cli("--name", name, "ssh", "gpu1", "hostname")
    ran = _cli("--name", name, "run", "--", "ssh", "gpu1", "uname")
    again = _cli("--name", name, "up")
    down = _cli("--name", name, "down")

    assert up.returncode == 0
    assert {"fleet": name, "hosts": [{"host": "gpu1", "address": "10.77.0.11", "state": "on"}]} in status
    assert (asked.stdout, ran.stdout) == ("gpu1\n", "Linux\n")
    assert (again.returncode, again.stderr.startswith(f"error: fleet {name} is up already")) == (1, True)
    assert down.returncode == 0
    assert _mounts() == mounts
    assert [group for group in groups if group.exists()] == []
    assert not state.folder(name).exists()
    assert [pid for pid in (made.enclosure.holder_pid, made.enclosure.room_pid) if state.is_alive(pid)] == []
    assert fresh_fleet.hosts["gpu1"].ssh("hostname").stdout == "gpu1\n"


def test_a_stopped_program_on_a_host_does_not_hang_the_test(fresh_fleet: fleets.Fleet) -> None:
    """A program that is stopped, as a shutdown stops them all, goes on: nsenter would stop with it for good."""
    done = fresh_fleet.hosts["gpu1"].console(["sh", "-c", "kill -STOP $$; echo awake"])

    assert (done.returncode, done.stdout) == (0, "awake\n")


def test_the_machine_has_inotify_instances_enough_for_many_hosts(fresh_fleet: fleets.Fleet) -> None:
    """While a fleet is up the machine's limit is high enough for every worker's hosts; without it, path units fail to start."""
    assert fresh_fleet.hosts
    assert int(limits.INSTANCES.read_text()) >= limits.ENOUGH


def test_a_raised_limit_is_put_back_once(tmp_path: Path) -> None:
    """The first fleet keeps what the limit was, others raise nothing, the last one puts it back; a high one is left alone."""
    kept, setting = tmp_path / "kept", tmp_path / "setting"
    setting.write_text("128\n")
    for _ in range(2):
        limits.raise_all(kept, setting=setting)
        assert int(setting.read_text()) == limits.ENOUGH
    for _ in range(2):
        limits.put_back(kept, setting=setting)
        assert int(setting.read_text()) == 128
    setting.write_text(f"{2 * limits.ENOUGH}\n")
    limits.raise_all(kept, setting=setting)
    limits.put_back(kept, setting=setting)
    assert int(setting.read_text()) == 2 * limits.ENOUGH


def test_a_fleet_that_is_not_up_is_a_clear_error() -> None:
    """Attaching to a name that is not up says so."""
    with pytest.raises(FleetError, match="fleet nobody is not up"):
        fleets.attach("nobody")
