"""The host's clocks: CLOCK_BOOTTIME with the boot's id is what leases count by; the wall clock is only ever shown."""

from __future__ import annotations

import os
import time


def boottime_s() -> float:
    """Return seconds since this boot, suspended time included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_s() -> float:
    """Return seconds since the epoch by the host's wall clock, which may be wrong."""
    return time.time()


def boot_id() -> str:
    """Return the kernel's id of this boot.

    A hardened unit inside a container sees the machine's id and not the container's, which everybody else there sees: systemd
    hands the right one to the agent's units.
    """
    given = os.environ.get("SPECCTL_BOOT_ID", "")
    if len(given) == 32:
        return "-".join((given[:8], given[8:12], given[12:16], given[16:20], given[20:]))
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
