"""The fleet's keeper: one process that holds the namespaces, so that its end is the end of everything in them.

`python -m tests.fleet.holder NAME lifeline|persistent`, started by enclosure.py. There are two places: the *control side*, a
network namespace with the bridge, seen with an /etc/passwd whose root lives in the fleet's folder (OpenSSH takes a user's folder
from there, not from $HOME); and the *room*, the same network with processes and mounts of its own, where the hosts run. The
room's first process dies with the keeper, and the kernel then ends all others there and drops their mounts: no crash leaves a
host running.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from tests.fleet import namespaces, network, state

READY = "ready"


class _EndedError(Exception):
    """Somebody asked the keeper to end, or the room's first process is gone."""


def main(name: str, mode: str) -> None:
    """Set the two places up, say so on stdout, and hold them until the lifeline (stdin) closes or a signal comes."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    fleet = state.load(name)
    assert fleet is not None, "fleet.py writes the state before it starts the keeper"
    try:
        _make_control_side(state.folder(name))
        room_pid = _start_room(state.folder(name))
        fleet = dataclasses.replace(fleet, holder_pid=os.getpid(), room_pid=room_pid)
        state.save(fleet)
        signal.signal(signal.SIGCHLD, _end)
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        _hold(mode)
    except _EndedError:
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        state.leave(fleet)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise _EndedError


def _hold(mode: str) -> None:
    if mode == "lifeline":
        sys.stdin.buffer.read()
        return
    while True:
        signal.pause()


def _make_control_side(folder: Path) -> None:
    namespaces.unshare(namespaces.CLONE_NEWNET | namespaces.CLONE_NEWNS)
    _run("mount", "--make-rprivate", "/")
    for file in ("passwd", "hosts"):
        _run("mount", "--bind", str(folder / file), f"/etc/{file}")
    network.make_bridge()


def _start_room(folder: Path) -> int:
    """Fork the room's first process and return its number, once it has made its mounts."""
    namespaces.unshare(namespaces.CLONE_NEWPID)
    ready_to_read, ready_to_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready_to_read)
        _be_the_room(folder, ready_to_write)
    os.close(ready_to_write)
    if os.read(ready_to_read, 1) != b"+":
        raise _EndedError
    os.close(ready_to_read)
    return pid


def _be_the_room(folder: Path, ready_to_write: int) -> None:
    """Stay as the room's first process; never returns."""
    try:
        namespaces.die_with_parent(signal.SIGKILL)
        namespaces.unshare(namespaces.CLONE_NEWNS)
        _run("mount", "-t", "proc", "proc", "/proc")
        # Without its own, a host's shutdown aborts ("Attempted to remove disk file system").
        Path("/run/systemd/nspawn").mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "tmpfs", "/run/systemd/nspawn")
        (folder / "disks").mkdir()
        _run("mount", "-t", "tmpfs", "tmpfs", str(folder / "disks"))
        for descriptor in (0, 1):
            os.close(descriptor)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel then reaps the orphans of the room.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.write(ready_to_write, b"+")
        os.close(ready_to_write)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
