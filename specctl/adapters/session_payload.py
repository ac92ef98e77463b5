"""What runs on a host: the session's boot program and modules as they are sent, and the guard as one file; made once a process."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import zlib
from pathlib import Path

HOST = Path(__file__).resolve().parent.parent / "host"
BOOT = "boot"
PACKAGE = "specctl.host"


SESSION = f"{PACKAGE}.session"
GUARD = f"{PACKAGE}.guard_tick"


@functools.cache
def boot() -> str:
    """Return the program that a host's python is started with."""
    return f'{_boot()}\n\nserve(take(int(first_line())), "{SESSION}")\n'


@functools.cache
def guard() -> str:
    """Return the guard's program: one file with all of the modules in it, which refuses to run when it was changed."""
    packed = _packed()
    return f'''{_boot()}

import base64
import hashlib

packed = base64.b85decode("{base64.b85encode(packed).decode("ascii")}")
if hashlib.sha256(packed).hexdigest() != "{hashlib.sha256(packed).hexdigest()}":
    sys.exit("this file was changed: specctl's guard does not run it")
serve(packed, "{GUARD}")
'''


def _boot() -> str:
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
    packed = _packed()
    return f"{len(packed)}\n".encode("ascii") + packed


@functools.cache
def _packed() -> bytes:
    return zlib.compress(json.dumps(sources()).encode("utf-8"), level=6)
