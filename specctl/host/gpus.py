"""Ask the GPU driver's own tool what GPUs there are and who uses them; None everywhere where there is no such tool."""

from __future__ import annotations

import os
import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from specctl.host import commands, procs

TOOL = "nvidia-smi"
TIMEOUT_S = 10.0
MEBIBYTE = 1 << 20
UNKNOWN_FIELD = "is not a valid field"
BASE = ("index", "uuid", "name", "memory.total", "memory.used")
MORE = (
    "driver_version",
    "persistence_mode",
    "mig.mode.current",
    "power.limit",
    "power.default_limit",
    "temperature.gpu",
    "pci.bus_id",
)
NOW = (
    *BASE,
    "power.draw",
    "power.limit",
    "utilization.gpu",
    "temperature.gpu",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
)
# Newer drivers call it events, older ones throttling; the bits are the same.
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
MEGAHERTZ = 1_000_000
CUDA = re.compile(r"CUDA Version\s*:\s*([\d.]+)")


class Look(NamedTuple):
    """The GPUs (None: it cannot be told), the driver's version, and what the tool said in place of an answer."""

    gpus: Optional[List[Dict[str, object]]]
    driver: Optional[str] = None
    problem: Optional[str] = None


def present() -> bool:
    """Say whether the tool is there."""
    return any(os.access(os.path.join(folder, TOOL), os.X_OK) for folder in commands.PATH.split(":"))


def rows(output: str) -> List[List[str]]:
    """Split the tool's csv output into rows of fields."""
    return [[field.strip() for field in line.split(",")] for line in output.splitlines() if line.strip()]


def _run(*words: str) -> commands.Finished:
    return commands.run([TOOL, *words], TIMEOUT_S)


def _query(arguments: Sequence[str]) -> Optional[List[List[str]]]:
    if not present():
        return None
    done = _run(*arguments, "--format=csv,noheader,nounits")
    return rows(done.stdout.decode("utf-8", "replace")) if done.status == 0 else None


def _mebibytes(field: str) -> Optional[int]:
    return int(field) * MEBIBYTE if field.isdigit() else None


def _number(field: str) -> Optional[float]:
    try:
        found = float(field)
    except ValueError:
        return None
    return found if 0 <= found < 1e6 else None


def _switch(field: str) -> Optional[bool]:
    return {"enabled": True, "disabled": False}.get(field.lower())


def inventory(found: List[List[str]]) -> List[Dict[str, object]]:
    """Turn rows of BASE, or of BASE and MORE, into objects; what the driver does not say is None."""
    gpus: List[Dict[str, object]] = []
    for row in found:
        if len(row) < len(BASE) or not row[0].isdigit():
            continue
        more = dict(zip(MORE, row[len(BASE) :]))
        gpus.append(
            {
                "index": int(row[0]),
                "uuid": row[1] or None,
                "model": row[2] or None,
                "memory_bytes": _mebibytes(row[3]),
                "used_bytes": _mebibytes(row[4]),
                "persistence": _switch(more.get("persistence_mode", "")),
                "mig": _switch(more.get("mig.mode.current", "")),
                "power_limit_w": _number(more.get("power.limit", "")),
                "power_default_w": _number(more.get("power.default_limit", "")),
                "temperature_c": _number(more.get("temperature.gpu", "")),
                "bus_id": more.get("pci.bus_id") or None,
            }
        )
    return gpus


def _driver(found: List[List[str]]) -> Optional[str]:
    versions = [row[len(BASE)] for row in found if len(row) > len(BASE)]
    return versions[0] if versions and versions[0][:1].isdigit() else None


def _words(done: commands.Finished) -> str:
    """Return what the tool said when it failed, in one line."""
    if done.status is None:
        return f"{TOOL} did not answer within {TIMEOUT_S:.0f} s"
    said = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace").split("\n")
    return " ".join(line.strip() for line in said if line.strip())[:300] or f"{TOOL} ended with status {done.status}"


def look() -> Look:
    """Return what the driver says of the GPUs; a driver too old for some fields is asked for the basic ones."""
    if not present():
        return Look(None)
    done = _run(f"--query-gpu={','.join(BASE + MORE)}", "--format=csv,noheader,nounits")
    if done.status != 0 and UNKNOWN_FIELD in _words(done):
        done = _run(f"--query-gpu={','.join(BASE)}", "--format=csv,noheader,nounits")
    if done.status != 0:
        return Look(None, None, _words(done))
    found = rows(done.stdout.decode("utf-8", "replace"))
    return Look(inventory(found), _driver(found))


def figures() -> Look:
    """Return what the driver says of the GPUs at this moment: memory, power, load, heat, clocks, and why they are slowed."""
    if not present():
        return Look(None)
    for fields in (*((*NOW, reasons) for reasons in REASONS), NOW, BASE):
        done = _run(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
        if done.status == 0:
            found = rows(done.stdout.decode("utf-8", "replace"))
            return Look([_figures(dict(zip((*NOW, REASONS[0]), row))) for row in found if row[0].isdigit()])
        if UNKNOWN_FIELD not in _words(done):
            break
    return Look(None, None, _words(done))


def _figures(row: Mapping[str, str]) -> Dict[str, object]:
    busy = _number(row.get("utilization.gpu", ""))
    return {
        "index": int(row["index"]),
        "uuid": row.get("uuid") or None,
        "model": row.get("name") or None,
        "memory_total_bytes": _mebibytes(row.get("memory.total", "")),
        "memory_used_bytes": _mebibytes(row.get("memory.used", "")),
        "power_w": _number(row.get("power.draw", "")),
        "power_limit_w": _number(row.get("power.limit", "")),
        "busy_ratio": None if busy is None else busy / 100.0,
        "temperature_c": _number(row.get("temperature.gpu", "")),
        "sm_clock_hz": _hertz(row.get("clocks.sm", "")),
        "sm_clock_max_hz": _hertz(row.get("clocks.max.sm", "")),
        "memory_clock_hz": _hertz(row.get("clocks.mem", "")),
        "throttle_bits": _bits(row.get(REASONS[0], "")),
    }


def _hertz(field: str) -> Optional[int]:
    return int(field) * MEGAHERTZ if field.isdigit() else None


def _bits(field: str) -> Optional[int]:
    try:
        return int(field, 16) if field.startswith("0x") else None
    except ValueError:
        return None


def cuda_version() -> Optional[str]:
    """Return the newest CUDA that the driver can run; asked for in the way of new drivers, then in that of old ones."""
    if not present():
        return None
    for words in (["--version"], []):
        found = CUDA.search(_run(*words).stdout.decode("utf-8", "replace"))
        if found:
            return found.group(1)
    return None


def fabric() -> Optional[List[Dict[str, object]]]:
    """Return each GPU's registration with the NVSwitch fabric; None where the driver knows no such field."""
    found = _query(["--query-gpu=index,fabric.state,fabric.status"])
    if found is None:
        return None
    named = [[row[0], *(_stated(field) for field in row[1:3])] for row in found if len(row) > 2 and row[0].isdigit()]
    return [{"index": int(str(index)), "state": state, "status": status} for index, state, status in named]


def _stated(field: str) -> Optional[str]:
    return None if field.strip("[]").lower() in ("", "n/a", "not supported", "unknown error") else field


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


def applications() -> Optional[List[Dict[str, object]]]:
    """Return each process on each GPU, named without its arguments (they may hold secrets); None where it cannot be told."""
    found = _query(["--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory"])
    if found is None:
        return None
    return [
        {
            "gpu": row[0],
            "pid": int(row[1]),
            "name": _name(int(row[1]), ",".join(row[2:-1])),
            "used_bytes": _mebibytes(row[-1]),
        }
        for row in found
        if len(row) >= 4 and row[1].isdigit()
    ]


def _name(pid: int, said: str) -> str:
    """Return a process's own name where it can be seen, else the program that the driver names."""
    if procs.stat(pid) is not None:
        return procs.name(pid)
    return os.path.basename(said.split(" ", 1)[0])[: procs.NAME_LIMIT] or "?"
