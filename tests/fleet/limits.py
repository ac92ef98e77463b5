"""The machine's own limit that test hosts need raised, put back by the last fleet that goes.

Every systemd, journal and path unit of a host holds inotify instances: 7 to 10 a host, and its path units one each. They all count
as this machine's root's, of whom the kernel takes 128 by default: fewer than four workers' hosts have while they boot.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
ENOUGH = 2048


def raise_all(kept: Path, *, setting: Path = INSTANCES) -> None:
    """Raise the limit where it is lower; `kept` is the file that keeps what it was, until it is put back."""
    found = int(setting.read_text())
    if found >= ENOUGH:
        return
    if not kept.exists():
        kept.write_text(str(found))
    with contextlib.suppress(OSError):  # Where /proc/sys is read-only, hosts live with what there is.
        setting.write_text(str(ENOUGH))


def put_back(kept: Path, *, setting: Path = INSTANCES) -> None:
    """Put the limit back to what it was before any fleet raised it; nothing where none did."""
    with contextlib.suppress(OSError):
        setting.write_text(kept.read_text())
        kept.unlink()
