"""What a host says of itself beside its GPUs: processor, memory, disks, limits, versions, clock; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from specctl.rollout import reading

UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Where a path lies or would lie: what is free there, on which kind of file system, and whether we could write."""

    path: str
    free_bytes: int | None = None
    total_bytes: int | None = None
    filesystem: str | None = None
    writable: bool | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "path": self.path,
            "free_bytes": self.free_bytes,
            "total_bytes": self.total_bytes,
            "filesystem": self.filesystem,
            "writable": self.writable,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A host without its GPUs; None: not known.

    `memlock_bytes` and `nofile` are the hard limits of our session (infinity: none). `clock_ahead_s` is by how much its wall
    clock was ahead of the operator's when the facts arrived. `hugepages_bytes` is memory that is set aside for hugepages.
    """

    cpu_model: str | None = None
    cpu_count: int | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    hugepages_bytes: int | None = None
    memlock_bytes: float | None = None
    nofile: float | None = None
    nr_open: int | None = None
    os: str | None = None
    kernel: str | None = None
    systemd: str | None = None
    systemd_runs: bool | None = None
    python: str | None = None
    clock_ahead_s: float | None = None
    clock_synchronised: bool | None = None
    infiniband: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = ()

    @classmethod
    def from_wire(cls, answer: Mapping[str, object], now_s: float | None) -> Machine:
        """Build it from what the session answered; `now_s` is the operator's wall clock when it arrived."""
        limits, pages = reading.mapping(answer.get("limits")), reading.mapping(answer.get("hugepages"))
        total, size = reading.whole(pages.get("total")), reading.whole(pages.get("size_bytes"))
        wall_s = reading.number(answer.get("wall_s"))
        return cls(
            cpu_model=reading.text(answer.get("cpu_model")),
            cpu_count=reading.whole(answer.get("cpu_count")),
            memory_bytes=reading.whole(answer.get("memory_bytes")),
            memory_free_bytes=reading.whole(answer.get("memory_free_bytes")),
            hugepages_bytes=total * size if total is not None and size is not None else None,
            memlock_bytes=_limit(limits.get("memlock_bytes")),
            nofile=_limit(limits.get("nofile")),
            nr_open=reading.whole(limits.get("nr_open")),
            os=reading.text(answer.get("os")),
            kernel=reading.text(answer.get("kernel")),
            systemd=reading.text(answer.get("systemd")),
            systemd_runs=reading.claim(answer.get("systemd_runs")),
            python=reading.text(answer.get("python")),
            clock_ahead_s=wall_s - now_s if wall_s is not None and now_s is not None else None,
            clock_synchronised=reading.claim(answer.get("time_synchronised")),
            infiniband=reading.texts(answer.get("infiniband")),
            disks=tuple(disk for row in reading.rows(answer.get("disks")) if (disk := _disk(row))),
        )

    def disk(self, path: str) -> Disk | None:
        """Return what is known of the disk under a path that was asked about."""
        return next((disk for disk in self.disks if disk.path == path), None)

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "cpu_model": self.cpu_model,
            "cpu_count": self.cpu_count,
            "memory_bytes": self.memory_bytes,
            "memory_free_bytes": self.memory_free_bytes,
            "hugepages_bytes": self.hugepages_bytes,
            "memlock_bytes": _shown(self.memlock_bytes),
            "nofile": _shown(self.nofile),
            "nr_open": self.nr_open,
            "os": self.os,
            "kernel": self.kernel,
            "systemd": self.systemd,
            "systemd_runs": self.systemd_runs,
            "python": self.python,
            "clock_ahead_s": None if self.clock_ahead_s is None else round(self.clock_ahead_s, 3),
            "clock_synchronised": self.clock_synchronised,
            "infiniband": list(self.infiniband),
            "disks": [disk.as_wire() for disk in self.disks],
        }


def _limit(value: object) -> float | None:
    return math.inf if value == UNLIMITED else reading.number(value)


def _shown(limit: float | None) -> object:
    """Return a limit as JSON can hold it."""
    if limit is None:
        return None
    return UNLIMITED if math.isinf(limit) else int(limit)


def _disk(row: Mapping[str, object]) -> Disk | None:
    path = reading.text(row.get("path"))
    if path is None:
        return None
    return Disk(
        path=path,
        free_bytes=reading.whole(row.get("free_bytes")),
        total_bytes=reading.whole(row.get("total_bytes")),
        filesystem=reading.text(row.get("filesystem")),
        writable=reading.claim(row.get("writable")),
    )
