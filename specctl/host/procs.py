"""Read processes from /proc: whether one lives, what it is called, its kin, what it uses. A pid counts only with its start time."""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from specctl.host import files

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
GONE = frozenset("ZXx")
NAME_LIMIT = 60


class Stat(NamedTuple):
    """A process as /proc/PID/stat tells it; `started` is its start in ticks since boot."""

    pid: int
    state: str
    parent: int
    group: int
    cpu_s: float
    started: int


class Figures(NamedTuple):
    """What some processes use in sum; `read_bytes` None: /proc/PID/io may not be read."""

    processes: int
    rss_bytes: int
    read_bytes: Optional[int]
    cpu_s: float


def _read(pid: int, name: str) -> Optional[bytes]:
    try:
        return files.read(f"/proc/{pid}/{name}")
    except OSError:
        return None


def stat(pid: int) -> Optional[Stat]:
    """Return a process's figures, or None when there is none of that pid; a zombie counts as gone."""
    found = _read(pid, "stat")
    if not found:
        return None
    fields = found.rpartition(b")")[2].split()
    state = fields[0].decode("ascii")
    if state in GONE:
        return None
    return Stat(
        pid=pid,
        state=state,
        parent=int(fields[1]),
        group=int(fields[2]),
        cpu_s=(int(fields[11]) + int(fields[12])) * TICK_S,
        started=int(fields[19]),
    )


def started(pid: int) -> Optional[int]:
    """Return when a living process began, in ticks since boot, or None."""
    found = stat(pid)
    return found.started if found else None


def alive(process: Tuple[int, int]) -> bool:
    """Say whether exactly this process (pid, start) still lives."""
    return started(process[0]) == process[1]


def name(pid: int) -> str:
    """Return what a process calls itself: its title's first word or program, never its arguments (they may hold secrets)."""
    title = (_read(pid, "cmdline") or b"").split(b"\0")[0].decode("utf-8", "replace").strip()
    command = (_read(pid, "comm") or b"").decode("utf-8", "replace").strip()
    first = title.split(" ")[0].rpartition("/")[2] if title.startswith("/") else title.split(" ")[0]
    return (first or command or "?")[:NAME_LIMIT]


def pids() -> List[int]:
    """Return all pids there are."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _children(pid: int) -> Optional[List[int]]:
    """Return the children of all threads of a process, or None where the kernel does not list them."""
    found: List[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            listed = files.read(f"/proc/{pid}/task/{thread}/children")
        except OSError:
            continue
        if listed is None and os.path.isdir(f"/proc/{pid}/task/{thread}"):
            return None
        found.extend(int(child) for child in (listed or b"").split())
    return found


def tree(root: int) -> List[int]:
    """Return a process and all its descendants, by the kernel's lists of children."""
    found: List[int] = []
    todo = [root]
    while todo:
        pid = todo.pop()
        if pid in found or stat(pid) is None:
            continue
        found.append(pid)
        children = _children(pid)
        if children is None:
            return family(root)
        todo.extend(children)
    return found


def family(root: int) -> List[int]:
    """Return a process, its descendants and the members of its process group, by a look at every process there is."""
    stats = [found for found in (stat(pid) for pid in pids()) if found]
    kin: Set[int] = {found.pid for found in stats if root in (found.pid, found.group)}
    grown = True
    while grown:
        more = {found.pid for found in stats if found.parent in kin} - kin
        kin |= more
        grown = bool(more)
    return sorted(kin)


def _read_bytes(pid: int) -> Optional[int]:
    for line in (_read(pid, "io") or b"").splitlines():
        if line.startswith(b"read_bytes:"):
            return int(line.split()[1])
    return None


def figures(among: Iterable[int]) -> Figures:
    """Sum up what the living ones of some processes use."""
    count, rss, cpu = 0, 0, 0.0
    reads: Dict[int, Optional[int]] = {}
    for pid in among:
        found = stat(pid)
        pages = (_read(pid, "statm") or b"0 0").split()
        if found is None:
            continue
        count += 1
        cpu += found.cpu_s
        rss += int(pages[1]) * PAGE_BYTES
        reads[pid] = _read_bytes(pid)
    known = [value for value in reads.values() if value is not None]
    return Figures(count, rss, sum(known) if known else None, round(cpu, 2))


def marked(among: Iterable[int]) -> List[Tuple[int, int]]:
    """Return the living ones of some pids with their start times, so that they can be told from others later."""
    return [(found.pid, found.started) for found in (stat(pid) for pid in among) if found]
