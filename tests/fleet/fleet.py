"""The whole fleet: bring it up, find one that is up, act from the operator's side, take it down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests.fleet import cgroups, disk, enclosure, image, keys, network, state
from tests.fleet.host import Host
from tests.fleet.waiting import FleetError

# What the operator's side does not see of this process's environment: other keys and folders, settings of the program under test.
FOREIGN = ("SSH_", "XDG_", "SPECCTL_")
RUN_WITHIN_S = 300.0
SPECCTL = Path(sys.executable).with_name("specctl")


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet that is up. `hosts` is by name, gpu1 … gpuN."""

    name: str
    hosts: Mapping[str, Host]
    enclosure: enclosure.Enclosure
    operator: keys.Operator
    keeper: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def home(self) -> Path:
        """Return the operator's home folder: its .ssh knows the hosts."""
        return self.operator.home

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of programs on the operator's side, with these changes."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        path = f"{Path(sys.executable).parent}:{own.get('PATH', os.defpath)}"
        return own | {"HOME": str(self.home), "PATH": path} | dict(changes or {})

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout_s: float = RUN_WITHIN_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the operator's side to its end; its status and output are the caller's to judge."""
        return subprocess.run(
            self.enclosure.control_argv(argv, cwd=cwd or self.home),
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(env),
            timeout=timeout_s,
        )

    def start(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a program on the operator's side; a signal to what this returns reaches the program itself."""
        return subprocess.Popen(
            self.enclosure.control_argv(argv, cwd=cwd or self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(env),
        )

    def specctl(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout_s: float = RUN_WITHIN_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run the checkout's specctl on the operator's side."""
        return self.run([str(SPECCTL), *arguments], cwd=cwd, env=env, stdin=stdin, timeout_s=timeout_s)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the calling thread, and the threads and programs that it starts meanwhile, on the operator's side."""
        with self.enclosure.entered():
            yield

    def trust_hosts(self) -> None:
        """Make the operator's known_hosts right again, whatever a test did to it."""
        folder = state.folder(self.name) / "keys"
        self.operator.trust({host: keys.read(folder / host) for host in self.hosts})

    def down(self) -> None:
        """End the fleet and wait until nothing of it is left."""
        enclosure.end(self.name, self.keeper)


def up(count: int, *, name: str, lifeline: bool, shared: Iterable[Path] = ()) -> Fleet:
    """Boot `count` hosts. With a lifeline the fleet ends when this process does, however it ends; without, by `down` alone.

    `shared` are folders that the hosts see read-only at the same paths, beside the checkout and its interpreter.
    """
    hosts = network.host_names(count)
    base = image.ensure()
    lock = state.claim(name)
    try:
        groups = tuple(str(group) for group in cgroups.places(name))
        folders = tuple(str(folder) for folder in shared)
        state.save(state.State(name=name, hosts=hosts, groups=groups, shared=folders))
        operator_key = _make_operator(state.folder(name), hosts)
        keeper = enclosure.start(name, lock, lifeline=lifeline)
    finally:
        os.close(lock)
    try:
        fleet = attach(name, keeper)
        _boot_all(fleet, base, operator_key)
    except BaseException:
        enclosure.end(name, keeper)
        raise
    return fleet


def attach(name: str, keeper: subprocess.Popen[bytes] | None = None) -> Fleet:
    """Return a fleet that is up, whoever brought it up."""
    known = state.load(name)
    place = enclosure.attach(name)
    assert known is not None, "the enclosure has just read it"
    folder = state.folder(name)
    operator = keys.Operator(folder / "home")
    hosts = {
        host: Host(
            name=host,
            fleet_folder=folder,
            enclosure=place,
            operator=operator,
            fleet_groups=known.group_paths,
            also_shared=known.shared_paths,
        )
        for host in known.hosts
    }
    return Fleet(name=name, hosts=MappingProxyType(hosts), enclosure=place, operator=operator, keeper=keeper)


def _make_operator(folder: Path, hosts: tuple[str, ...]) -> str:
    """Write what the operator's side needs before it exists: keys, SSH files, files for /etc. Return the operator's public key."""
    operator, public = keys.make_operator(folder / "home", hosts)
    (folder / "passwd").write_text(keys.passwd_of(operator.home))
    (folder / "hosts").write_text(network.hosts_file(hosts))
    (folder / "keys").mkdir(mode=0o700)
    operator.trust({host: keys.generate(folder / "keys" / host, comment=host) for host in hosts})
    return public


def _boot_all(fleet: Fleet, base: Path, operator_key: str) -> None:
    names = tuple(fleet.hosts)
    folder = state.folder(fleet.name)
    for name, host in fleet.hosts.items():
        key = keys.read(folder / "keys" / name)
        disk.make(fleet.enclosure, folder / "disks" / name, base, disk.first_files(name, names, key, operator_key))
        host.switch_on()
    for host in fleet.hosts.values():
        host.wait_ready()
    _prove_shared_interpreter(next(iter(fleet.hosts.values())))


def _prove_shared_interpreter(host: Host) -> None:
    """Refuse a fleet whose hosts cannot run the checkout's interpreter (built for a newer C library, say)."""
    done = host.console([sys.executable, "-c", "import ssl, sys; print(sys.prefix)"])
    if done.returncode != 0 or Path(done.stdout.strip()) != Path(sys.prefix):
        why = done.stderr.strip() or done.stdout.strip()
        raise FleetError(
            f"hosts cannot run {sys.executable} ({why}): make the environment with a Python that lives in a folder of its own "
            f"and runs on Debian {image.SUITE} (pyenv, uv venv --managed-python)"
        )
