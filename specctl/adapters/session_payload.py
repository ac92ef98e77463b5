"""What a session sends first: the boot program and the modules of specctl/host, packed once a process."""

from __future__ import annotations

import functools
import json
import zlib
from pathlib import Path

HOST = Path(__file__).resolve().parent.parent / "host"
BOOT = "boot"
PACKAGE = "specctl.host"


@functools.cache
def boot() -> str:
    """Return the program that a host's python is started with."""
    return (HOST / f"{BOOT}.py").read_text(encoding="utf-8")


def sources() -> dict[str, str]:
    """Return the modules by name."""
    found = {
        f"{PACKAGE}.{path.stem}": path.read_text(encoding="utf-8")
        for path in sorted(HOST.glob("*.py"))
        if path.stem not in (BOOT, "__init__")
    }
    return {"specctl": "", PACKAGE: "", **found}


@functools.cache
def modules() -> bytes:
    """Return the modules as the boot program reads them."""
    packed = zlib.compress(json.dumps(sources()).encode("utf-8"), level=9)
    return f"{len(packed)}\n".encode("ascii") + packed
