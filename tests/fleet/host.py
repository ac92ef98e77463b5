"""One test host: what a test can do to it (reboot, cut its cable, pull its plug) and ask of it.

`ssh` goes the operator's way. `console` goes round the network, like a serial console: it works on a host that is cut off, and
it is how the fixture itself looks and tidies, so that a test's own SSH stays the only one.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fleet import cgroups, disk, image, keys, network, shared
from tests.fleet.enclosure import Enclosure
from tests.fleet.waiting import FleetError, until

KEEPER = Path(__file__).with_name("keeper.sh")
RELAY = Path(__file__).with_name("relay.py")
BOOTED_WITHIN_S = 60.0
ENDED_WITHIN_S = 60.0
ANSWER_WITHIN_S = 60.0
NUDGE_EVERY_S = 0.5
BOOT_ID = "/proc/sys/kernel/random/boot_id"
SUDOERS = f"/etc/sudoers.d/{image.ORDINARY_USER}"
CONSOLE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A person who is strict: what is answered under these options is what the host's known key vouches for.
STRICT = (
    "StrictHostKeyChecking=yes",
    "GlobalKnownHostsFile=/dev/null",
    "BatchMode=yes",
    "ConnectTimeout=3",
    "LogLevel=ERROR",
)

# Back to a host that specctl has never seen; leftovers of SSH sessions count as leftovers.
FRESH = """
units() { systemctl list-units --all --plain --no-legend --full 'specctl*' | while read -r unit rest; do echo "$unit"; done; }
left=$(units)
if [ -n "$left" ]; then
    systemctl kill --kill-whom=all --signal=KILL $left 2>/dev/null
    systemctl stop $left 2>/dev/null
fi
files=$(ls -d /etc/systemd/system/specctl* /etc/systemd/system/*.wants/specctl* /run/systemd/system/specctl* \
    /run/systemd/transient/specctl* 2>/dev/null)
sshd=$(systemctl show --value -p MainPID ssh.service)
for pid in $(cat /sys/fs/cgroup/systemd/system.slice/ssh.service/cgroup.procs \
                 /sys/fs/cgroup/system.slice/ssh.service/cgroup.procs 2>/dev/null); do
    [ "$pid" = "$sshd" ] || kill -KILL "$pid" 2>/dev/null
done
rm -rf /etc/systemd/system/specctl* /etc/systemd/system/*.wants/specctl*
rm -rf /run/systemd/system/specctl* /run/systemd/transient/specctl*
rm -rf /var/lib/specctl /etc/specctl /run/specctl /etc/sudoers.d/ops
rm -rf /opt/specctl /var/lib/specctl-agent /usr/local/bin/specctl-agent
if getent passwd specctl-agent >/dev/null; then userdel specctl-agent; fi
if getent group specctl >/dev/null; then groupdel specctl; fi
[ -z "$left$files" ] || systemctl daemon-reload  # the dear part of it, and most hosts of a test it never touched
systemctl reset-failed
journalctl --quiet --rotate
rm -f /var/log/journal/*/*@*
"""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine called `name`. Its methods return when what they say is so, or raise FleetError."""

    name: str
    fleet_folder: Path
    enclosure: Enclosure
    operator: keys.Operator
    fleet_groups: tuple[Path, ...]
    also_shared: tuple[Path, ...] = ()

    @property
    def address(self) -> str:
        """Return the host's address, which exists in the fleet's network only."""
        return network.address(self.name)

    @property
    def console_log(self) -> Path:
        """Return the file with what the host printed while it booted."""
        return self.fleet_folder / f"{self.name}.log"

    @property
    def is_running(self) -> bool:
        """Say whether the host is switched on."""
        return self._leader() is not None

    @property
    def is_cut(self) -> bool:
        """Say whether the host's cable is cut."""
        return self._cut_mark.exists()

    def ssh(
        self,
        command: str | Sequence[str],
        *,
        user: str = "root",
        stdin: str | bytes | None = None,
        timeout_s: float = ANSWER_WITHIN_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command, or an argv, on the host over SSH with its key checked; status 255 is SSH's own."""
        text = command if isinstance(command, str) else shlex.join(command)
        options = [argument for option in STRICT for argument in ("-o", option)]
        argv = ["ssh", "-F", str(self.operator.config), *options, f"{user}@{self.name}", "--", text]
        return _ran(self.enclosure.control_argv(argv, cwd=self.fleet_folder), stdin, timeout_s)

    def console(
        self, argv: Sequence[str], *, stdin: str | bytes | None = None, timeout_s: float = ANSWER_WITHIN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the host as root, not over the network."""
        leader = self._leader()
        if leader is None:
            raise FleetError(f"{self.name} is switched off")
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]
        inside = ["env", "-i", f"PATH={CONSOLE_PATH}", "LANG=C.UTF-8", "HOME=/root", *argv]
        return _ran(["nsenter", "--target", str(leader), *spaces, "--", *inside], stdin, timeout_s)

    def output(self, argv: Sequence[str], *, stdin: str | bytes | None = None) -> str:
        """Return what the program prints on the console; raise FleetError when it fails."""
        done = self.console(argv, stdin=stdin)
        if done.returncode != 0:
            raise FleetError(f"{self.name}: {shlex.join(argv)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    @property
    def root(self) -> Path:
        """Return the host's root folder as this machine sees it; another one after each boot."""
        return self._file("/")

    def boot_id(self) -> str:
        """Return the identity of the current boot."""
        return self.read(BOOT_ID).decode().strip()

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        return self._file(path).read_bytes()

    def put(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file, and the folders to it."""
        file = self._file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)

    def switch_on(self) -> None:
        """Start booting; `wait_ready` waits for the end of it."""
        if self.is_running:
            raise FleetError(f"{self.name} is switched on already")
        groups = cgroups.make(self.fleet_groups, self.name)
        variables = {
            "FLEET_LINK": network.link(self.name),
            "FLEET_CUT": str(self._cut_mark),
            "FLEET_GROUPS": " ".join(str(group) for group in groups),
            "PATH": os.environ["PATH"],
        }
        with self.console_log.open("ab") as log:
            subprocess.run(
                self.enclosure.room_argv(["setsid", "--fork", str(KEEPER), *self._nspawn_arguments()]),
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
            )

    def wait_ready(self) -> None:
        """Wait until the host's sshd greets (on a host that is cut off: until systemd has started it)."""
        until(self._is_ready, within_s=BOOTED_WITHIN_S, what=f"{self.name} ready (see {self.console_log})")

    def boot(self) -> None:
        """Switch the host on and wait until it is ready."""
        self.switch_on()
        self.wait_ready()

    def reboot(self) -> None:
        """Reboot in good order and wait until the host is ready in another boot."""
        before = self.boot_id()
        self.output(["systemctl", "--no-block", "reboot"])
        self.wait_rebooted(before)

    def wait_rebooted(self, before: str) -> None:
        """Wait until the host is ready in another boot than `before`, whoever asked for it."""
        until(lambda: self._other_boot(before), within_s=BOOTED_WITHIN_S, what=f"another boot of {self.name}")
        self.wait_ready()

    def kill(self) -> None:
        """Pull the plug: every process of the host ends at once; its disk stays. `boot` brings it back."""
        leader = self._leader()
        if leader is None:
            raise FleetError(f"{self.name} is switched off already")
        os.kill(leader, signal.SIGKILL)
        self.wait_off()

    def wait_off(self) -> None:
        """Wait until nothing of the host runs."""
        until(lambda: not cgroups.members(self._groups), within_s=ENDED_WITHIN_S, what=f"the end of {self.name}")

    def cut(self) -> None:
        """Cut the host's cable: packets vanish, connections hang. It stays cut through reboots, until `mend`."""
        self._cut_mark.touch()
        self._ip(("link", "set", network.link(self.name), "down"))

    def slow(self, delay_ms: float) -> None:
        """Let every packet to and from the host take the delay: a round trip takes it twice. Ends with `mend` or a reboot."""
        self._join()
        self._ip(*network.slowing(self.name))
        log = self.fleet_folder / f"{self.name}.relay"
        ends = (network.link(self.name), network.slow_links(self.name)[0])
        with log.open("wb") as output:
            argv = ["setsid", "--fork", sys.executable, "-u", str(RELAY), str(delay_ms), *ends]
            subprocess.run(
                self.enclosure.room_argv(argv), check=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        until(
            lambda: log.read_text().startswith("ready"), within_s=ENDED_WITHIN_S, what=f"the slow cable of {self.name}"
        )

    def mend(self) -> None:
        """Join the cable again, make it quick, and wait until the host answers."""
        self._cut_mark.unlink(missing_ok=True)
        if not self.is_running:
            return
        self._join()
        self._ip(("link", "set", network.link(self.name), "up"))
        self.wait_ready()

    def change_key(self) -> keys.KeyPair:
        """Give the host another SSH key than the operator knows, as after a reinstallation (or by an attacker)."""
        path = self.fleet_folder / "keys" / f"{self.name}-changed"
        changed = keys.read(path) if path.exists() else keys.generate(path, comment=f"{self.name} changed")
        self._show_key(changed)
        return changed

    def allow_sudo(self) -> None:
        """Let the ordinary user become root without a password; `fresh` takes it back."""
        self.put(SUDOERS, f"{image.ORDINARY_USER} ALL=(ALL) NOPASSWD: ALL\n".encode(), mode=0o440)

    def fresh(self) -> None:
        """Make the host one that specctl has never seen: on, connected, with its known key, without units, state or old journal."""
        if not self.is_running:
            self.boot()
        self.mend()
        own = keys.read(self.fleet_folder / "keys" / self.name)
        if self.read(disk.HOST_KEY).decode() != own.private:
            self._show_key(own)
        self.output(["sh", "-c", FRESH])
        self.wait_ready()

    @property
    def _cut_mark(self) -> Path:
        return self.fleet_folder / f"{self.name}.cut"

    @property
    def _groups(self) -> tuple[Path, ...]:
        return tuple(group / self.name for group in self.fleet_groups)

    def _leader(self) -> int | None:
        return cgroups.leader(self._groups)

    def _file(self, path: str) -> Path:
        leader = self._leader()
        if leader is None:
            raise FleetError(f"{self.name} is switched off")
        return Path(f"/proc/{leader}/root") / path.lstrip("/")

    def _ip(self, *commands: tuple[str, ...]) -> None:
        for command in commands:
            self.enclosure.in_room(["ip", *command])

    def _join(self) -> None:
        links = self.enclosure.in_room(["ip", "-brief", "link", "show", "type", "veth"])
        if f"{network.slow_links(self.name)[0]}@" in links:
            self._ip(*network.joining(self.name))

    def _show_key(self, pair: keys.KeyPair) -> None:
        self.put(disk.HOST_KEY, pair.private.encode(), mode=0o600)
        self.put(f"{disk.HOST_KEY}.pub", pair.public.encode())
        self.output(["systemctl", "reload", "ssh.service"])
        self.wait_ready()

    def _nspawn_arguments(self) -> list[str]:
        return [
            "--quiet",
            f"--directory={self.fleet_folder / 'disks' / self.name / 'root'}",
            f"--machine={self.name}",
            "--register=no",
            "--keep-unit",
            "--kill-signal=SIGRTMIN+3",
            f"--network-bridge={network.BRIDGE}",
            "--console=pipe",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
            *shared.nspawn_arguments(self.also_shared),
            image.INIT,
        ]

    def _is_ready(self) -> bool:
        if not self.is_running:
            return False
        if self.is_cut:
            return self.console(["systemctl", "is-active", "--quiet", "ssh.service"]).returncode == 0
        try:
            with self.enclosure.entered(), socket.create_connection((self.address, 22), timeout=1.0) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _other_boot(self, before: str) -> bool:
        if not self.is_running:
            return False
        try:
            return self.boot_id() not in {"", before}
        except (OSError, FleetError):  # It went down, or has not mounted this yet, between the two looks.
            return False


def _ran(argv: list[str], stdin: str | bytes | None, timeout_s: float) -> subprocess.CompletedProcess[str]:
    content: bytes | None = stdin.encode() if isinstance(stdin, str) else stdin or b""
    deadline = time.monotonic() + timeout_s
    program = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while True:
        try:
            out, err = program.communicate(content, timeout=NUDGE_EVERY_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                program.kill()
                program.communicate()
                raise
            # A host that shuts down stops all its processes first; nsenter sees that, stops itself, and nobody would wake it.
            program.send_signal(signal.SIGCONT)
            content = None
        else:
            answers = (answer.decode("utf-8", "replace") for answer in (out, err))
            return subprocess.CompletedProcess(argv, program.returncode, *answers)
