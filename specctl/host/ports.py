"""Find out who listens on a TCP port of this host: nobody, the server's own processes, or somebody else's."""

from __future__ import annotations

import os
from typing import Iterable, List, NamedTuple, Optional

from specctl.host import procs

LISTENING = "0A"
REFUSED = "refused"
OWN = "own"
FOREIGN = "foreign"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


class Owner(NamedTuple):
    """Who answers on a port (None: cannot be told) and, for a stranger, the process where it can be seen."""

    port: Optional[str]
    pid: Optional[int] = None
    name: Optional[str] = None

    def words(self) -> Optional[str]:
        """Return the stranger as people read it."""
        if self.port != FOREIGN:
            return None
        return f"{self.name} (pid {self.pid})" if self.pid is not None else "a process that cannot be seen"


def _table(path: str) -> List[List[str]]:
    """Return the fields of each row of a socket table; none where the kernel has no such table."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return [line.split(None, 10) for line in file][1:]
    except FileNotFoundError:
        return []


def listening(port: int) -> List[str]:
    """Return the socket inodes that listen on a port, whatever the address."""
    ending = f":{port:04X}"
    rows = [row for table in TABLES for row in _table(table) if len(row) > 9]
    return [row[9] for row in rows if row[3] == LISTENING and row[1].endswith(ending)]


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _holds(pid: int, inodes: Iterable[str]) -> Optional[bool]:
    """Say whether a process holds one of the sockets; None when its files may not be seen."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    try:
        entries = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return None
    except OSError:
        return False
    return any(_link(f"/proc/{pid}/fd/{entry}") in wanted for entry in entries)


def owner(port: int, own: Iterable[int]) -> Owner:
    """Say who listens; a socket that none of our processes holds is a stranger's, unless ours may not be looked at."""
    inodes = listening(port)
    if not inodes:
        return Owner(REFUSED)
    ours = set(own)
    held = {inode: [_holds(pid, [inode]) for pid in ours] for inode in inodes}
    strange = [inode for inode, answers in held.items() if True not in answers]
    if not strange:
        return Owner(OWN)
    if any(None in held[inode] for inode in strange):
        return Owner(None)
    for pid in procs.pids():
        if pid not in ours and _holds(pid, strange):
            return Owner(FOREIGN, pid, procs.name(pid))
    # The holder may have ended between both looks; then nobody listens any more.
    return Owner(FOREIGN) if set(listening(port)) & set(strange) else Owner(REFUSED)
