"""What stands between GPUs on PCI: whether the IOMMU translates their addresses, and bridges that redirect their traffic (ACS)."""

from __future__ import annotations

import glob
import os
import struct
from typing import Dict, List, Optional

from specctl.host import files

DEVICES = "/sys/bus/pci/devices"
BRIDGE = "0x0604"
NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")
EXTENDED = 0x100
CONFIG_BYTES = 4096
ACS = 0x0D
REDIRECT = 0x04 | 0x08  # P2P request redirect, P2P completion redirect


def _starts(path: str, beginnings: List[str]) -> bool:
    return (files.read_text(path) or "").startswith(tuple(beginnings))


def command_line(text: str) -> List[str]:
    """Return the words of the kernel's command line that speak of the IOMMU or of ACS."""
    names = ("iommu", "intel_iommu", "amd_iommu", "pci")
    return [
        word
        for word in text.split()
        if word.partition("=")[0].rpartition(".")[0] in names or word.partition("=")[0] in names
    ]


def iommu() -> Dict[str, object]:
    """Return how many IOMMUs work, the kernel's words on it, and the kinds of the GPUs' groups (identity: not translated)."""
    kinds: Dict[str, int] = {}
    for path in glob.glob(f"{DEVICES}/*/iommu_group/type"):
        device = os.path.dirname(os.path.dirname(path))
        if _starts(f"{device}/vendor", [NVIDIA]) and _starts(f"{device}/class", list(GPU_CLASSES)):
            kind = (files.read_text(path) or "").strip()
            kinds[kind] = kinds.get(kind, 0) + 1
    units = len(os.listdir("/sys/class/iommu")) if os.path.isdir("/sys/class/iommu") else 0
    return {"units": units, "kinds": kinds, "cmdline": command_line(files.read_text("/proc/cmdline") or "")}


def redirects(config: bytes) -> Optional[bool]:
    """Say from a bridge's configuration space whether its ACS redirects P2P; None: no ACS, or not all of it could be read."""
    place = EXTENDED
    for _ in range(64):  # more capabilities than fit
        if place + 8 > len(config) or place < EXTENDED:
            return None
        (header,) = struct.unpack_from("<I", config, place)
        if header & 0xFFFF == ACS:
            (control,) = struct.unpack_from("<H", config, place + 6)
            return bool(control & REDIRECT)
        place = header >> 20
    return None


def acs() -> Optional[Dict[str, object]]:
    """Return how many bridges have ACS and how many of them redirect; None where the session may not read that."""
    bridges = [os.path.dirname(path) for path in glob.glob(f"{DEVICES}/*/class") if _starts(path, [BRIDGE])]
    found = []
    for bridge in bridges:
        config = files.read(f"{bridge}/config", CONFIG_BYTES) or b""
        if len(config) <= EXTENDED:
            return None
        found.append(redirects(config))
    return (
        {"bridges": len([one for one in found if one is not None]), "redirecting": found.count(True)} if found else None
    )
