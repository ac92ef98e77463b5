"""One control group a test host, so that hosts cannot see, count or stop each other's processes.

Under cgroup v1 the groups lie below the caller's own, so that its limits go on holding; under v2 below the root, the only place
where controllers can be handed down. The groups also tell which processes belong to a host, whoever started them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.fleet.waiting import FleetError, until

REMOVED_WITHIN_S = 10.0


def places(fleet: str) -> tuple[Path, ...]:
    """Return the fleet's group in each hierarchy of this machine; none of them need exist yet."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    legacy = {option: mount[1] for mount in mounts if mount[2] == "cgroup" for option in mount[3].split(",")}
    unified = next((mount[1] for mount in mounts if mount[2] == "cgroup2"), None)
    found: dict[Path, None] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        mount = unified if not controllers else legacy.get(controllers.split(",")[0])
        if mount is not None:
            below = Path(mount) if not legacy else Path(mount) / own.lstrip("/")
            found[below / f"specctl-fleet-{fleet}"] = None
    if not found:
        raise FleetError("no cgroup hierarchy is mounted")
    return tuple(found)


def make(fleet_groups: Iterable[Path], host: str) -> tuple[Path, ...]:
    """Make the host's group in each hierarchy and return them."""
    made = []
    for group in fleet_groups:
        _make_one(group)
        _make_one(group / host)
        made.append(group / host)
    return tuple(made)


def _make_one(group: Path) -> None:
    group.mkdir(exist_ok=True)
    for setting in ("cpuset.cpus", "cpuset.mems"):
        # Under v1 a new cpuset is empty, and an empty one takes no process.
        if (group.parent / setting).exists() and (group / "tasks").exists():
            (group / setting).write_text((group.parent / setting).read_text())
    controllers = group.parent / "cgroup.controllers"
    if controllers.exists() and not (group / "tasks").exists():
        for controller in controllers.read_text().split():
            with contextlib.suppress(OSError):  # A controller that cannot be handed down is one that hosts do without.
                (group.parent / "cgroup.subtree_control").write_text(f"+{controller}")


def members(groups: Iterable[Path]) -> frozenset[int]:
    """Return the processes in the groups and below, as this process numbers them."""
    return frozenset(pid for group in groups for pid in _members_of(group))


def _members_of(group: Path) -> Iterator[int]:
    for folder, _, files in os.walk(group):
        if "cgroup.procs" in files:
            with contextlib.suppress(OSError):  # The group ended between being listed and being read.
                # 0 stands for a process outside this PID namespace.
                yield from (int(pid) for pid in (Path(folder) / "cgroup.procs").read_text().split() if pid != "0")


def leader(host_groups: Iterable[Path]) -> int | None:
    """Return the host's first process (its systemd), or None while it does not run."""
    for group in host_groups:
        for scope in (group / "init.scope", group / "payload" / "init.scope"):
            pids = frozenset(_members_of(scope))
            if pids:
                return min(pids)
    return None


def kill(groups: Iterable[Path]) -> None:
    """End every process in the groups, at once."""
    for pid in members(groups):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remove(groups: Iterable[Path]) -> None:
    """Remove the groups and all below them, ending what still runs there; groups that do not exist are fine."""
    for group in groups:
        until(functools.partial(_removed, group), within_s=REMOVED_WITHIN_S, what=f"removing {group}")


def _removed(group: Path) -> bool:
    kill([group])
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):  # Busy until its last process is gone: the caller tries again.
            Path(folder).rmdir()
    return not group.exists()
