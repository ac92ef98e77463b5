"""What the host says of itself and of its servers' units, as values; pure.

What cannot be read is None, never 0. Units are in the names; times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSample:
    """One systemd unit: what the service manager says of it (asked seldom) and what its control group says (each time).

    `asked_at_s` is when systemd was last asked for `active`, `sub`, `result`, `main_pid` and `restarts`; None where
    it never answered.
    `invocation` is the id of this start: another one means that the server was started anew.
    Memory is the group's charge, page cache of mapped weights included; `limit_bytes` is None without a limit.
    """

    unit: str
    asked_at_s: float | None = None
    active: str | None = None
    sub: str | None = None
    result: str | None = None
    main_pid: int | None = None
    restarts: int | None = None
    invocation: str | None = None
    memory_bytes: int | None = None
    limit_bytes: int | None = None
    oom_kills: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """The machine at one moment.

    `cpu_ratio` is the share of all CPUs' time since the sample before that was not idle (waiting for disks counts as
    idle): None in the first. `load_1m` is a number of tasks, not a ratio. `disk_…` are of the file system that holds
    the agent's state; `free` is what an ordinary user may still write.
    """

    at_s: float
    cpus: int | None = None
    cpu_ratio: float | None = None
    load_1m: float | None = None
    load_5m: float | None = None
    load_15m: float | None = None
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    disk_total_bytes: int | None = None
    disk_free_bytes: int | None = None
    units: tuple[UnitSample, ...] = ()
