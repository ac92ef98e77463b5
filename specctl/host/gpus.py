"""Ask the GPU driver's own tool what GPUs there are and who uses them; None everywhere where there is no such tool."""

from __future__ import annotations

import shutil
from typing import Dict, List, Optional, Sequence

from specctl.host import commands

TOOL = "nvidia-smi"
TIMEOUT_S = 10.0
MEBIBYTE = 1 << 20


def present() -> bool:
    """Say whether the tool is there."""
    return shutil.which(TOOL, path=commands.PATH) is not None


def rows(output: str) -> List[List[str]]:
    """Split the tool's csv output into rows of fields."""
    return [[field.strip() for field in line.split(",")] for line in output.splitlines() if line.strip()]


def _query(arguments: Sequence[str]) -> Optional[List[List[str]]]:
    if not present():
        return None
    done = commands.run([TOOL, *arguments, "--format=csv,noheader,nounits"], TIMEOUT_S)
    return rows(done.stdout.decode("utf-8", "replace")) if done.status == 0 else None


def _mebibytes(field: str) -> Optional[int]:
    return int(field) * MEBIBYTE if field.isdigit() else None


def inventory(found: List[List[str]]) -> List[Dict[str, object]]:
    """Turn rows of index, uuid, name, memory.total, memory.used into objects."""
    return [
        {
            "index": int(row[0]),
            "uuid": row[1] or None,
            "model": row[2] or None,
            "memory_bytes": _mebibytes(row[3]),
            "used_bytes": _mebibytes(row[4]),
        }
        for row in found
        if len(row) >= 5 and row[0].isdigit()
    ]


def listing() -> Optional[List[Dict[str, object]]]:
    """Return the GPUs, or None where it cannot be told."""
    found = _query(["--query-gpu=index,uuid,name,memory.total,memory.used"])
    return None if found is None else inventory(found)


def by_process(found: List[List[str]]) -> Dict[int, int]:
    """Turn rows of pid and used memory into bytes by pid, a process on several GPUs summed up; unknown memory counts as 0."""
    used: Dict[int, int] = {}
    for row in found:
        if len(row) >= 2 and row[0].isdigit():
            used[int(row[0])] = used.get(int(row[0]), 0) + (_mebibytes(row[1]) or 0)
    return used


def processes() -> Optional[Dict[int, int]]:
    """Return the bytes of GPU memory by pid, or None where it cannot be told."""
    found = _query(["--query-compute-apps=pid,used_gpu_memory"])
    return None if found is None else by_process(found)
