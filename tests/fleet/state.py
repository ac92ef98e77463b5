"""What runs, on disk: one folder a fleet, with its processes, its groups and a lock that its keeper holds while it lives.

A lock that nobody holds means that the fleet's keeper died (a killed test run, say): whoever comes next removes what is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fleet import cgroups, limits
from tests.fleet.waiting import FleetError

BASE = Path("/run/specctl-fleet")
LIMIT = BASE / ".limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One fleet. The processes are None until its keeper runs."""

    name: str
    hosts: tuple[str, ...]
    groups: tuple[str, ...]
    shared: tuple[str, ...] = ()
    holder_pid: int | None = None
    room_pid: int | None = None

    @property
    def group_paths(self) -> tuple[Path, ...]:
        """Return the fleet's control groups."""
        return tuple(Path(group) for group in self.groups)

    @property
    def shared_paths(self) -> tuple[Path, ...]:
        """Return the folders that its hosts share beside the usual ones."""
        return tuple(Path(folder) for folder in self.shared)


def folder(name: str) -> Path:
    """Return the folder of the fleet's state, keys and consoles."""
    return BASE / name


def save(state: State) -> None:
    """Write the state so that a reader sees the old or the new one, never a part."""
    target = folder(state.name) / "state.json"
    scratch = target.with_suffix(".new")
    scratch.write_text(json.dumps(asdict(state), indent=1))
    scratch.rename(target)


def load(name: str) -> State | None:
    """Return the fleet's state, or None where there is no such fleet."""
    try:
        read = json.loads((folder(name) / "state.json").read_text())
    except FileNotFoundError:
        return None
    return State(
        name=read["name"],
        hosts=tuple(read["hosts"]),
        groups=tuple(read["groups"]),
        shared=tuple(read["shared"]),
        holder_pid=read["holder_pid"],
        room_pid=read["room_pid"],
    )


def claim(name: str) -> int:
    """Make the fleet's folder and lock it; return the lock's descriptor, to be handed to the keeper. Removes leftovers first."""
    with _changing():
        _sweep()
        if folder(name).exists():
            raise FleetError(f"fleet {name} is up already (python -m tests.fleet down --name {name})")
        folder(name).mkdir(mode=0o700)
        lock = os.open(folder(name) / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        limits.raise_all(LIMIT)
        return lock


def names() -> tuple[str, ...]:
    """Return the fleets that are up, in order."""
    return tuple(path.name for path in _folders() if is_up(path.name))


def is_up(name: str) -> bool:
    """Say whether a keeper holds the fleet's lock."""
    try:
        lock = os.open(folder(name) / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def sweep() -> tuple[str, ...]:
    """Remove what dead fleets left behind; return their names."""
    with _changing():
        dead = _sweep()
        _put_back()
        return dead


def leave(state: State) -> None:
    """Discard the fleet of the process that holds its lock; the machine's limit is put back where it was the last one."""
    discard(state)
    with _changing():
        _put_back()


def _put_back() -> None:
    if not _folders():
        limits.put_back(LIMIT)


def discard(state: State) -> None:
    """End the fleet's processes and remove its groups and folder; what is gone already is fine."""
    if state.room_pid is not None and _is_room(state.room_pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.room_pid, signal.SIGKILL)
    cgroups.remove(state.group_paths)
    shutil.rmtree(folder(state.name), ignore_errors=True)


def is_alive(pid: int) -> bool:
    """Say whether the process runs; one that has ended and only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_room(pid: int) -> bool:
    """Say whether the process is a room's first one: the number may be another's by now."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    spaces = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
    return len(spaces) > 1 and spaces[-1] == "1" and "tests.fleet.holder" in command


def _sweep() -> tuple[str, ...]:
    dead = tuple(path.name for path in _folders() if not is_up(path.name))
    for name in dead:
        state = load(name)
        if state is not None:
            discard(state)
        shutil.rmtree(folder(name), ignore_errors=True)
    return dead


def _folders() -> tuple[Path, ...]:
    return tuple(sorted(path for path in BASE.iterdir() if path.is_dir())) if BASE.is_dir() else ()


@contextmanager
def _changing() -> Iterator[None]:
    """Hold the lock under which fleets are made and swept, so that nobody sweeps a fleet that is just being made."""
    BASE.mkdir(mode=0o755, exist_ok=True)
    with (BASE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
