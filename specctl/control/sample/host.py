"""What the host says of itself and of its servers' units, as values; pure.

What cannot be read is None, never 0. Units are in the names; times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

# What `systemctl show` is asked of a unit (systemd's D-Bus names).
PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "NRestarts",
    "InvocationID",
    "ControlGroup",
)

_NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitState:
    """What systemd says of one unit; `control_group` is its path below the cgroup mount."""

    unit: str
    load: str | None = None
    active: str | None = None
    sub: str | None = None
    result: str | None = None
    main_pid: int | None = None
    restarts: int | None = None
    invocation: str | None = None
    control_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSample:
    """One systemd unit: what the service manager says of it (asked seldom) and what its control group says (each time).

    `asked_at_s` is when systemd gave `load` to `restarts`; all of it is None where it never answered, and under another
    service manager. `invocation` is the id of this start: another one means that the server was started anew.
    Memory is the group's charge, page cache of mapped weights included; `limit_bytes` is None without a limit.
    """

    unit: str
    asked_at_s: float | None = None
    load: str | None = None
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


def parse_show(text: str) -> tuple[UnitState, ...]:
    """Read what `systemctl show` printed of units: one block each, `Name=value` lines; empty values are None."""
    return tuple(_unit_state(block) for block in text.strip().split("\n\n") if block.strip())


def _unit_state(block: str) -> UnitState:
    said = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    pid = _number(said.get("MainPID"))
    return UnitState(
        unit=said.get("Id", ""),
        load=said.get("LoadState") or None,
        active=said.get("ActiveState") or None,
        sub=said.get("SubState") or None,
        result=said.get("Result") or None,
        main_pid=pid or None,  # 0 is systemd's word for none
        restarts=_number(said.get("NRestarts")),
        invocation=said.get("InvocationID") or None,
        control_group=said.get("ControlGroup") or None,
    )


def parse_count(text: str) -> int | None:
    """Read a file of a control group that holds one number; no limit (`max`, or cgroup v1's near 2⁶³) and nonsense are None."""
    value = _number(text.strip())
    return None if value is None or value >= _NO_LIMIT else value


def parse_event(text: str, name: str) -> int | None:
    """Read one count of a control group's flat-keyed file: `oom_kill` of memory.events, or of cgroup v1's memory.oom_control."""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _number(value)
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
