"""Say who this host is and what time it has: the first op of every session."""

from __future__ import annotations

import os
import socket
import sys
from typing import Dict, Mapping, Optional

from specctl.host import clock, commands, files
from specctl.host.wire import Call

SYSTEMD_BOOTED = "/run/systemd/system"


def os_release() -> Optional[str]:
    """Return the operating system's name and version."""
    for line in (files.read_text("/etc/os-release") or "").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip('"') or None
    return None


def systemd_version() -> Optional[str]:
    """Return systemd's version when it runs this host, else None."""
    if not os.path.isdir(SYSTEMD_BOOTED):
        return None
    words = commands.run(["systemctl", "--version"], 5.0).stdout.split()
    return words[1].decode("ascii", "replace") if len(words) > 1 else None


def hello(call: Call) -> Mapping[str, object]:
    """Return the host's name, boot, clocks and versions; nothing that needs another program, since every command waits for it."""
    del call
    found: Dict[str, object] = {
        "hostname": socket.gethostname(),
        "boot_id": clock.boot_id(),
        "boottime_s": clock.boottime_s(),
        "wall_s": clock.wall_s(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "uid": os.geteuid(),
        "pid": os.getpid(),
        "os": os_release(),
        "kernel": os.uname().release,
    }
    return found


def ping(call: Call) -> Mapping[str, object]:
    """Answer, so that each side knows that the other one lives."""
    del call
    return {"boottime_s": clock.boottime_s()}
