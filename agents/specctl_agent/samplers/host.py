"""The host sampler: processors, memory, swap, the disk that holds the agent's state, and the servers' units.

The one place that imports psutil.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from specctl.control.sample.host import HostSample
from specctl_agent.samplers.host_units import UnitWatch

# Longer than systemctl may take, and than a disk that spins up.
DEADLINE_S = 15.0


class HostSampler:
    """Samples the machine. `sample` raises OSError where /proc cannot be read; what else is missing is None."""

    name = "host"
    deadline_s = DEADLINE_S

    def __init__(self, *, state_dir: Path, units: UnitWatch | Sequence[str] = (), period_s: float = 1.0) -> None:
        self.period_s = period_s
        self._state_dir = state_dir
        self._units = units if isinstance(units, UnitWatch) else UnitWatch(units)
        self._cpus = os.cpu_count()
        self._cpu_times: tuple[float, float] | None = None

    def sample(self) -> HostSample:
        """Take one look."""
        now_s = time.monotonic()
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        load_1m, load_5m, load_15m = os.getloadavg()
        disk_total_bytes, disk_free_bytes = self._disk()
        return HostSample(
            at_s=now_s,
            cpus=self._cpus,
            cpu_ratio=self._cpu_ratio(),
            load_1m=load_1m,
            load_5m=load_5m,
            load_15m=load_15m,
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            swap_total_bytes=swap.total,
            swap_used_bytes=swap.used,
            disk_total_bytes=disk_total_bytes,
            disk_free_bytes=disk_free_bytes,
            units=self._units.sample(now_s),
        )

    def close(self) -> None:
        """Hold nothing."""

    def _cpu_ratio(self) -> float | None:
        """Return the busy share since the look before; None at first, and where the clock of ticks has not moved."""
        times = psutil.cpu_times()
        idle_s = times.idle + times.iowait
        all_s = idle_s + times.user + times.nice + times.system + times.irq + times.softirq + times.steal
        before, self._cpu_times = self._cpu_times, (all_s, idle_s)
        if before is None or all_s <= before[0]:
            return None
        return min(1.0, max(0.0, 1.0 - (idle_s - before[1]) / (all_s - before[0])))

    def _disk(self) -> tuple[int | None, int | None]:
        try:
            disk = psutil.disk_usage(str(self._state_dir))
        except OSError:
            return None, None
        return disk.total, disk.free
