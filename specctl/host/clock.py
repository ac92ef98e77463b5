"""The host's clocks: CLOCK_BOOTTIME with the boot's id is what leases count by; the wall clock is only ever shown."""

from __future__ import annotations

import time


def boottime_s() -> float:
    """Return seconds since this boot, suspended time included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_s() -> float:
    """Return seconds since the epoch by the host's wall clock, which may be wrong."""
    return time.time()


def boot_id() -> str:
    """Return the kernel's id of this boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
