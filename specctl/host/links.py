"""How the GPUs reach each other: the driver's topology matrix, NVSwitches, and the service that configures those."""

from __future__ import annotations

import glob
import re
from typing import Dict, List, Optional

from specctl.host import commands, files, gpus

ANSI = re.compile(r"\x1b\[[0-9;]*m")
GPU = re.compile(r"GPU(\d+)\Z")
LINK = re.compile(r"(NV\d+|PIX|PXB|PHB|NODE|SYS)\Z")
MANAGER = "nvidia-fabricmanager.service"
NVIDIA = "0x10de"
SWITCH_CLASS = "0x0680"
PCI = "/sys/bus/pci/devices"


def _cells(line: str) -> List[str]:
    """Split a line of the matrix: by tabs, since some cells are empty; a copy that lost its tabs by blanks."""
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()


def matrix(text: str) -> Optional[Dict[str, object]]:
    """Parse `nvidia-smi topo -m`: GPU indices, and between each two of them NV#, PIX, PXB, PHB, NODE or SYS (None: not told)."""
    lines = [ANSI.sub("", line) for line in text.splitlines() if line.strip()]
    heads = [number for number, line in enumerate(lines) if GPU.match((_cells(line) or [""])[0] or "")]
    header = next(
        (line for line in lines if any(GPU.match(cell) for cell in _cells(line)) and "X" not in _cells(line)), None
    )
    if header is None or not heads:
        return None
    names = [cell for cell in _cells(header) if cell]
    found: Dict[int, Dict[int, str]] = {}
    for line in (lines[number] for number in heads):
        cells = _cells(line)
        row = GPU.match(cells[0])
        if row is None or line is header:
            continue
        pairs = [(GPU.match(name), cell) for name, cell in zip(names, cells[1:])]
        found[int(row.group(1))] = {int(name.group(1)): cell for name, cell in pairs if name}
    order = sorted(found)
    return {"gpus": order, "links": [[_link(found[one].get(other)) for other in order] for one in order]}


def _link(cell: Optional[str]) -> Optional[str]:
    return cell if cell is not None and LINK.match(cell) else None


def topology() -> Optional[Dict[str, object]]:
    """Return the matrix of this host, or None where there is no such tool or it does not answer."""
    if not gpus.present():
        return None
    done = commands.run([gpus.TOOL, "topo", "-m"], gpus.TIMEOUT_S)
    return matrix(done.stdout.decode("utf-8", "replace")) if done.status == 0 else None


def switches() -> int:
    """Count the NVSwitches on the PCI bus (those of the newest boards do not show there)."""
    classes = [path for path in glob.glob(f"{PCI}/*/class") if (files.read_text(path) or "").startswith(SWITCH_CLASS)]
    return len([path for path in classes if (files.read_text(f"{path[:-5]}vendor") or "").strip() == NVIDIA])


def manager() -> Optional[Dict[str, object]]:
    """Return what systemd says of the fabric manager; None where there is no systemd."""
    done = commands.run(["systemctl", "show", MANAGER, "--property=LoadState,ActiveState"], 10.0)
    if done.status != 0:
        return None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    found: Dict[str, str] = dict(line.split("=", 1) for line in lines if "=" in line)
    return {"loaded": found.get("LoadState") or None, "active": found.get("ActiveState") or None}
