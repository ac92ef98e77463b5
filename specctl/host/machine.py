"""What the machine itself has: processor, memory, hugepages, limits, disks, network adapters, clock discipline, versions."""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from typing import Dict, List, Optional, Union

from specctl.host import files, hello

TIMEX_BYTES = 512  # larger than struct timex of any platform
UNSYNCHRONISED = 0x40
STATUS_AT = 40


def cpu_model() -> Optional[str]:
    """Return the processor's name."""
    for line in (files.read_text("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model"):
            return value.strip() or None
    return None


def memory() -> Dict[str, Optional[int]]:
    """Return the fields of /proc/meminfo, sizes in bytes, counts as they are."""
    found: Dict[str, Optional[int]] = {}
    for line in (files.read_text("/proc/meminfo") or "").splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[key] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def hugepages(found: Dict[str, Optional[int]]) -> Optional[Dict[str, object]]:
    """Return the reserved hugepages, which nothing else can use; None where the kernel has none."""
    if "HugePages_Total" not in found:
        return None
    return {
        "total": found["HugePages_Total"],
        "free": found.get("HugePages_Free"),
        "size_bytes": found.get("Hugepagesize"),
    }


def _limit(kind: int) -> Union[int, str]:
    hard = resource.getrlimit(kind)[1]
    return "unlimited" if hard == resource.RLIM_INFINITY else hard


def limits() -> Dict[str, object]:
    """Return the hard limits that this session has and hands on, and how many files the kernel lets a limit name."""
    text = files.read_text("/proc/sys/fs/nr_open")
    return {
        "memlock_bytes": _limit(resource.RLIMIT_MEMLOCK),
        "nofile": _limit(resource.RLIMIT_NOFILE),
        "nr_open": int(text) if text else None,
    }


def existing(path: str) -> str:
    """Return the nearest folder that is there, at or above a path."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def filesystem(path: str, mounts: str) -> Optional[str]:
    """Return the kind of the file system that a path lies on, by the text of /proc/self/mountinfo; the last mount wins."""
    best, kind = "", None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, words = left.split(" "), right.split(" ")
        if len(fields) < 5:
            continue
        mount = fields[4].replace("\\040", " ")
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, words[0] or None
    return kind


def disk(path: str) -> Dict[str, object]:
    """Return what is free where a path lies or would lie, and whether this session could write there."""
    place = existing(path)
    found = os.statvfs(place)
    mounts = files.read_text("/proc/self/mountinfo") or ""
    return {
        "path": path,
        "free_bytes": found.f_bavail * found.f_frsize,
        "total_bytes": found.f_blocks * found.f_frsize,
        "filesystem": filesystem(os.path.realpath(place), mounts),
        "writable": os.access(place, os.W_OK),
    }


def adapters() -> List[str]:
    """Return the InfiniBand and RoCE adapters."""
    try:
        return sorted(os.listdir("/sys/class/infiniband"))
    except OSError:
        return []


def synchronised() -> Optional[bool]:
    """Say whether a time service keeps the clock, by the kernel's own word; None where it may not be asked."""
    if ctypes.sizeof(ctypes.c_long) != 8:
        return None
    area = ctypes.create_string_buffer(TIMEX_BYTES)
    if ctypes.CDLL(None).adjtimex(area) < 0:
        return None
    (status,) = struct.unpack_from("i", area.raw, STATUS_AT)
    return not status & UNSYNCHRONISED


def versions() -> Dict[str, object]:
    """Return the versions of operating system, kernel, systemd (and whether it runs this host) and our interpreter."""
    return {
        "os": hello.os_release(),
        "kernel": os.uname().release,
        "systemd": hello.systemd_version(),
        "systemd_runs": os.path.isdir(hello.SYSTEMD_BOOTED),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
    }
