"""Real sessions over pipes, and a real supervisord with a small engine, for the tests of what runs on a host."""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specctl.adapters.local import LocalTransport
from specctl.adapters.session import HostSession
from specctl.fleet.types import Host, Via
from specctl.host import ports, procs
from specctl.rollout.observation import Observation

ENGINE = Path(__file__).with_name("engine.py")
LIMIT_S = 15.0
SERVER = "k26"


def until(claim: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Wait until a claim holds, or fail with its words."""
    deadline = time.monotonic() + limit_s
    while not claim():
        assert time.monotonic() < deadline, f"in {limit_s} s it did not come to pass: {what}"
        time.sleep(0.01)


def free_port() -> int:
    """Return a TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def sha256(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def release_args(folder: Path, release: str, texts: Mapping[str, str], token: int) -> dict[str, object]:
    """Return the arguments that write a release whose algos are named after its files."""
    manifest = {
        "id": release,
        "files": {name: sha256(text) for name, text in texts.items()},
        "secrets": {},
        "salt": "salt",
        "units": {name.rpartition(".")[0]: name for name in texts},
    }
    files = [{"name": name, "mode": 0o644, "content": text} for name, text in texts.items()]
    return {"dir": str(folder), "id": release, "files": files, "manifest": manifest, "token": token}


def interpreter(version: str) -> str:
    """Return an interpreter of that version on this machine, or skip."""
    found = shutil.which(f"python{version}")
    builds = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    if builds:
        return str(builds[0])
    if found is None or "shims" in found:
        pytest.skip(f"no Python {version} on this machine")
    return found


Opener = Callable[..., HostSession]


@contextlib.contextmanager
def sessions() -> Iterator[Opener]:
    """Open sessions on this machine; they end with the block."""
    transport = LocalTransport(Host(name="here", via=Via.LOCAL))
    opened: list[HostSession] = []

    def open_one(python: str = sys.executable) -> HostSession:
        opened.append(HostSession(transport, python=python))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()
    transport.close()


@pytest.fixture
def open_session() -> Iterator[Opener]:
    """Open sessions on this machine; they end with the test."""
    with sessions() as open_one:
        yield open_one


@pytest.fixture(scope="module")
def session() -> Iterator[HostSession]:
    """One session on this machine, shared by the tests of a module; a test that ends it opens its own."""
    with sessions() as open_one:
        yield open_one()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of one server."""
    return tmp_path / "state" / SERVER


@pytest.fixture
def token(session: HostSession, folder: Path) -> int:
    """The lease on the server, held by `session`."""
    found = session.call("lease.acquire", {"dir": str(folder), "owner": "tester", "reason": "test", "ttl_s": 60})
    number = found["token"]
    assert isinstance(number, int)
    return number


@dataclass(slots=True)
class Looks:
    """The observations of a watch, as they come."""

    session: HostSession
    args: Mapping[str, object]
    seen: list[tuple[float, Observation]] = field(default_factory=list)
    errors: queue.SimpleQueue[BaseException] = field(default_factory=queue.SimpleQueue)
    done: threading.Event = field(default_factory=threading.Event)

    def _take(self, event: Mapping[str, object]) -> None:
        self.seen.append((time.monotonic(), Observation.from_wire(event)))

    def _run(self) -> None:
        try:
            self.session.call("watch", self.args, on_event=self._take, cancel=self.done)
        except BaseException as error:  # noqa: BLE001  # handed to the test
            self.errors.put(error)

    @contextlib.contextmanager
    def going(self) -> Iterator[Looks]:
        """Watch while the block lasts."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.done.set()
            thread.join(LIMIT_S)
            assert not thread.is_alive(), "a cancelled watch ends"
            assert self.errors.empty(), self.errors.get()

    def when(self, claim: Callable[[Observation], bool], what: str, limit_s: float = LIMIT_S) -> float:
        """Return when (monotonic) the first observation came of which the claim holds."""
        until(lambda: any(claim(look) for _, look in list(self.seen)), what, limit_s)
        return next(at for at, look in list(self.seen) if claim(look))

    def lines(self) -> list[str]:
        """Return all log lines so far."""
        return [line for _, look in list(self.seen) for line in look.lines]


@dataclass(slots=True)
class Server:
    """A server under a supervisord of its own in a temporary folder."""

    session: HostSession
    folder: Path
    token: int
    port: int = field(default_factory=free_port)

    @property
    def manager(self) -> Mapping[str, object]:
        """The `manager` argument."""
        home = str(self.folder.parent)
        return {"kind": "supervisor", "home": home, "program": f"specctl-{SERVER}", "python": sys.executable}

    @property
    def args(self) -> dict[str, object]:
        """The arguments that every op on the server takes."""
        return {
            "server": SERVER,
            "dir": str(self.folder),
            "manager": self.manager,
            "port": self.port,
            "bind": "0.0.0.0",
            "token": self.token,
        }

    def call(self, op: str, **more: object) -> Mapping[str, object]:
        """Run an op."""
        return self.session.call(op, {**self.args, **more}, timeout_s=LIMIT_S * 2)

    def conf(self, *options: str, restart: str = "false", extra: str = "") -> str:
        """Return the text of a release's main file."""
        words = shlex.join([sys.executable, "-S", str(ENGINE), str(self.port), *options])
        return (
            f"[program:specctl-{SERVER}]\ncommand={words}\nautostart=true\nautorestart={restart}\nstartsecs=0\n"
            f"stopwaitsecs=30\nstopasgroup=false\nkillasgroup=true\nredirect_stderr=true\n"
            f"stdout_logfile={self.folder}/log\nstdout_logfile_maxbytes=50MB\n{extra}"
        )

    def write(self, release: str, **texts: str) -> None:
        """Write a release; each keyword is an algo and the text of its main file."""
        files = {f"{algo}.conf": text for algo, text in texts.items()}
        self.session.call("release.write", release_args(self.folder, release, files, self.token))

    def deploy(self, release: str, algo: str = "none", *options: str, restart: str = "false") -> Mapping[str, object]:
        """Write, activate and start a release of one algo; returns the unit's state."""
        self.write(release, **{algo: self.conf(*options, restart=restart)})
        self.call("release.activate", id=release, algo=algo)
        return self.started()

    def started(self) -> Mapping[str, object]:
        """Start what is current; returns the unit's state."""
        unit = self.call("unit.start")["unit"]
        assert isinstance(unit, Mapping)
        return unit

    def watch(self, **more: object) -> Looks:
        """Return a watch of the server."""
        return Looks(self.session, {**self.args, "period_s": 0.2, **more})

    def daemon_pid(self) -> int | None:
        """Return the pid in supervisord's pid file."""
        path = self.folder.parent / ".supervisor" / "supervisord.pid"
        return int(path.read_text()) if path.exists() else None


def end_process(pid: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Signal a process and wait until it has gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    until(lambda: not running(pid), f"process {pid} ends")


def running(pid: int) -> bool:
    """Say whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def end_daemon(server: Server) -> None:
    """End the supervisord of a server, if there is one, and its programs with all their children."""
    pid = server.daemon_pid()
    if pid is not None and running(pid):
        programs = [int(program) for program in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        kin = {one for program in programs for one in (program, *procs.family(program))}
        for one in (pid, *kin):
            end_process(one, signal.SIGKILL)


@pytest.fixture
def deep_server(session: HostSession, tmp_path: Path) -> Iterator[Server]:
    """A server whose folder has a longer path than a socket's address can be."""
    folder = tmp_path / ("deep" * 30) / SERVER
    found = session.call("lease.acquire", {"dir": str(folder), "owner": "tester", "reason": "test", "ttl_s": 60})
    assert isinstance(found["token"], int)
    made = Server(session=session, folder=folder, token=found["token"])
    yield made
    end_daemon(made)


@pytest.fixture
def server(session: HostSession, folder: Path, token: int) -> Iterator[Server]:
    """A server that is not deployed yet; what it started ends with the test."""
    made = Server(session=session, folder=folder, token=token)
    yield made
    end_daemon(made)


@pytest.fixture
def stranger(server: Server) -> Iterator[int]:
    """The pid of somebody else's server on the server's port at another address of this machine; it says that it is ready."""
    argv = [sys.executable, "-S", str(ENGINE), str(server.port), "--address", "127.0.0.2"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    until(lambda: ports.listening(server.port), "the stranger listens")
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """A Python that sees the standard library alone."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    path.chmod(0o755)
    return str(path)
