"""Read the end of an engine's verify trace on its host, where the engine says that it writes one (docs/verify-trace.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from specctl.adapters.transport import Transport
from specctl.errors import SpecctlError
from specctl.ops.engine_http import EngineClient

KEY = "verify_trace"
MOST_BYTES = 32_000_000
"""The newest part of a trace that is read; a probe's own steps take less than a megabyte."""
SILENCE_S = 20.0
PIECE_BYTES = 65536


def path_of(client: EngineClient) -> str | None:
    """Return where the engine writes its trace, by /server_info; None where it does not say."""
    path = client.get("/server_info").fields.get(KEY)
    return path if isinstance(path, str) and path.startswith("/") else None


def lines_of(transport: Transport, path: str, rids: Sequence[str]) -> tuple[bytes, ...]:
    """Return the lines of the file's end that name one of these requests; empty where it cannot be read."""
    names = [rid.encode() for rid in rids]
    marks = frozenset(names)
    common = _common(names)
    return tuple(
        line for line in _tail(transport, path).split(b"\n") if common in line and any(mark in line for mark in marks)
    )


def _common(names: Sequence[bytes]) -> bytes:
    """Return what all names begin with, a quick first look at a line."""
    first, last = min(names, default=b""), max(names, default=b"")
    at = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:at]


def _tail(transport: Transport, path: str) -> bytes:
    found = bytearray()
    try:
        stream = transport.open(["tail", "-c", str(MOST_BYTES), "--", path])
    except SpecctlError:
        return b""
    with contextlib.closing(stream), contextlib.suppress(TimeoutError, SpecctlError):
        stream.end_input()
        while len(found) <= MOST_BYTES and (piece := stream.read(PIECE_BYTES, timeout_s=SILENCE_S)):
            found += piece
    return bytes(found)
