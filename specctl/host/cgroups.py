"""Find the processes of a control group, on the v2 hierarchy or systemd's own v1 hierarchy, whichever the host has."""

from __future__ import annotations

import os
from typing import Iterator, List

from specctl.host import files, procs


def _mounts() -> Iterator[str]:
    """Yield where the hierarchies that systemd keeps its units in are mounted."""
    for line in (files.read_text("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "name=systemd" in right):
            yield fields[4].replace("\\040", " ")


def folders(group: str) -> List[str]:
    """Return the folders of a control group (as systemd names it) that exist on this host."""
    found = [mount + group for mount in _mounts()]
    return [folder for folder in found if os.path.isfile(os.path.join(folder, "cgroup.procs"))]


def _in_folder(folder: str) -> List[int]:
    found: List[int] = []
    for place, _, names in os.walk(folder):
        if "cgroup.procs" in names:
            try:
                found.extend(int(pid) for pid in (files.read(os.path.join(place, "cgroup.procs")) or b"").split())
            except OSError:
                continue  # The group went away while it was read.
    return found


def _by_membership(group: str) -> List[int]:
    """Look at every process's own word, for a host whose hierarchies are mounted where we cannot see them."""
    found = []
    for pid in procs.pids():
        try:
            lines = (files.read_text(f"/proc/{pid}/cgroup") or "").splitlines()
        except OSError:
            continue
        paths = [line.split(":", 2)[2] for line in lines if line.count(":") >= 2]
        if any(path == group or path.endswith(group) or path.startswith(group + "/") for path in paths):
            found.append(pid)
    return found


def members(group: str) -> List[int]:
    """Return the pids of a control group and of those below it; none when it is gone."""
    if group in ("", "/"):
        return []
    mounts = list(_mounts())
    places = folders(group)
    if places:
        return sorted({pid for place in places for pid in _in_folder(place) if pid > 0})
    return [] if mounts else _by_membership(group)
