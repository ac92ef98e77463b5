"""A real sshd on loopback for the tests of the SSH transport: own host keys, own known_hosts, own client configuration."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specctl.adapters.exchange import exchange
from specctl.adapters.ssh_resolve import CONFIG_VARIABLE
from specctl.errors import EXIT_CONNECT, ConnectError
from specctl.fleet.types import Host, Via

LIMIT_S = 10.0
PRIVILEGE_SEPARATION = Path("/run/sshd")
# Held (flock) by every test run that needs the folder above and found it missing.
USERS = Path("/run/specctl-test-sshd.lock")


def free_port() -> int:
    """Return a TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_listening(port: int) -> None:
    """Wait until a loopback port takes connections."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair."""
    size = ["-b", "2048"] if kind == "rsa" else []
    argv = ["ssh-keygen", "-q", "-t", kind, *size, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


@dataclass(slots=True)
class Sshd:
    """A running sshd: its port, the folder with its keys, and how to be its client."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    user: str = field(default_factory=getpass.getuser)

    @property
    def name(self) -> str:
        """Return its name in known_hosts."""
        return f"[127.0.0.1]:{self.port}"

    def public(self, kind: str) -> str:
        """Return `type base64` of one of its host keys."""
        return " ".join((self.folder / f"host_{kind}.pub").read_text().split()[:2])

    def known(self, kind: str = "ed25519", *, name: str | None = None, marker: str = "") -> str:
        """Return a known_hosts line that vouches for it."""
        return f"{marker}{name or self.name} {self.public(kind)}\n"


@dataclass(slots=True)
class Client:
    """An operator's machine: one folder with ssh_config, known_hosts and keys; nothing of the real user's is read."""

    folder: Path
    sshd: Sshd
    key: Path

    @property
    def known_hosts(self) -> Path:
        """Return its known_hosts file."""
        return self.folder / "known_hosts"

    def configure(
        self, *lines: str, hosts: str = "", known: str | None = None, keys: tuple[Path, ...] | None = None
    ) -> None:
        """Write ssh_config (`hosts` first, then options for all) and known_hosts, by default the right ones."""
        chosen = (self.key,) if keys is None else keys
        common = [
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile none",
            *(f"IdentityFile {key}" for key in chosen),
            *(() if any(line.startswith("IdentityAgent") for line in lines) else ("IdentityAgent none",)),
            *lines,
        ]
        (self.folder / "config").write_text(hosts + "Host *\n" + "".join(f"  {line}\n" for line in common))
        self.known_hosts.write_text(self.sshd.known() if known is None else known)

    def host(self, *, address: str = "127.0.0.1", port: int | None = None, sudo: bool = False) -> Host:
        """Return the inventory's host for the sshd, or for an alias of ssh_config."""
        if address == "127.0.0.1" and port is None:
            port = self.sshd.port
        return Host(name="gpu1", via=Via.SSH, address=address, port=port, user=self.sshd.user, sudo=sudo)

    def answers(self, host: Host) -> bool:
        """Tell whether a command on the host gives its output."""
        from specctl.adapters import ssh

        with contextlib.closing(ssh.dial(host)) as transport:
            return exchange(transport, ["echo", "here"], timeout_s=LIMIT_S).stdout == b"here\n"

    def refusal(self, host: Host) -> ConnectError:
        """Return the error that dialling ends with; it always names the host and says what to try."""
        from specctl.adapters import ssh

        with pytest.raises(ConnectError) as caught:
            ssh.dial(host)
        assert caught.value.host == "gpu1"
        assert caught.value.exit_code == EXIT_CONNECT
        assert caught.value.hint
        return caught.value


def start_sshd(folder: Path, *, extra: tuple[str, ...] = ()) -> Sshd:
    """Start an sshd with fresh host keys; its authorized_keys file lies in the folder."""
    port = free_port()
    for kind in ("ed25519", "ecdsa", "rsa"):
        if not (folder / f"host_{kind}").exists():
            make_key(folder / f"host_{kind}", kind=kind)
    lines = (
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        *(f"HostKey {folder}/host_{kind}" for kind in ("rsa", "ecdsa", "ed25519")),
        f"AuthorizedKeysFile {folder}/authorized_keys",
        # A home of its own, so that no start-up file of the real account has a say.
        f"SetEnv HOME={folder} PATH={folder}/bin:/usr/bin:/bin",
        "StrictModes no",
        "UsePAM no",
        "PidFile none",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "MaxStartups 100",
        *extra,
    )
    (folder / "sshd_config").write_text("".join(f"{line}\n" for line in lines))
    log = (folder / "sshd.log").open("ab")
    with log:
        process = subprocess.Popen(
            [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    wait_until_listening(port)
    return Sshd(folder=folder, port=port, process=process)


@contextlib.contextmanager
def privilege_separation() -> Iterator[None]:
    """Give a root's sshd the empty folder that it insists on; the last of several test runs at once takes it away again."""
    if os.geteuid() != 0 or (PRIVILEGE_SEPARATION.exists() and not USERS.exists()):
        yield
        return
    with USERS.open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                USERS.unlink()
                PRIVILEGE_SEPARATION.rmdir()


@pytest.fixture(scope="session")
def ssh_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the operator's keys once: `good` is let in, `locked` too but has a passphrase, `bad…` are strangers."""
    if shutil.which("sshd") is None and not Path("/usr/sbin/sshd").exists():
        pytest.skip("sshd is not installed (apt-get install openssh-server)")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("good", "bad1", "bad2", "bad3"):
        make_key(folder / name)
    make_key(folder / "locked", passphrase="open sesame")
    return folder


@pytest.fixture(scope="session")
def sshd(ssh_keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Run one ordinary sshd for the session."""
    with privilege_separation():
        yield from _running(ssh_keys, tmp_path_factory.mktemp("sshd"), ("MaxAuthTries 10", "MaxSessions 100"))


@pytest.fixture(scope="session")
def strict_sshd(ssh_keys: Path, tmp_path_factory: pytest.TempPathFactory, sshd: Sshd) -> Iterator[Sshd]:
    """Run an sshd that forbids forwarding, a second session and a third key."""
    assert sshd.process.poll() is None
    extra = ("AllowTcpForwarding no", "MaxSessions 1", "MaxAuthTries 2")
    yield from _running(ssh_keys, tmp_path_factory.mktemp("strict"), extra)


def _running(keys: Path, folder: Path, extra: tuple[str, ...]) -> Iterator[Sshd]:
    (folder / "bin").mkdir()
    (folder / "authorized_keys").write_text((keys / "good.pub").read_text() + (keys / "locked.pub").read_text())
    daemon = start_sshd(folder, extra=extra)
    try:
        yield daemon
    finally:
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait(LIMIT_S)


@pytest.fixture
def client(sshd: Sshd, ssh_keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Be an operator whose ssh_config and known_hosts are right."""
    folder = tmp_path / "operator"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv(CONFIG_VARIABLE, str(folder / "config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    operator = Client(folder=folder, sshd=sshd, key=ssh_keys / "good")
    operator.configure()
    return operator
