"""Carry one line to the agent's control socket and its answer back; and read what it decided where it does not run."""

from __future__ import annotations

import json
import os
import socket
from typing import Dict, List, Mapping, Optional

from specctl.host import files
from specctl.host.wire import REMOTE_COMMAND, USAGE, Call, OpError

SOCKET = "/run/specctl/agent.sock"
DECISIONS = "/var/lib/specctl-agent/decisions.jsonl"
LIMIT_S = 10.0
REPLY_BYTES = 2 << 20
FILE_BYTES = 8 << 20


def ask(call: Call) -> Mapping[str, object]:
    """Send a request's line (specctl/control/wire.py, which this does not read) and return the reply's."""
    return {"line": put(call.args.text("line"), call.args.text_or_none("socket"))}


def put(line: str, path: Optional[str] = None, limit_s: float = LIMIT_S) -> str:
    """Send one line to the agent's socket and return the reply's; raises OpError where nobody answers."""
    if "\n" in line.rstrip("\n"):
        raise OpError(USAGE, "a request is one line")
    path = path or SOCKET
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(limit_s)
            sock.connect(path)
            sock.sendall(line.rstrip("\n").encode() + b"\n")
            return _line(sock).decode("utf-8", "replace")
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise OpError(
            REMOTE_COMMAND, "the agent does not run on this host", hint="specctl agent status --host H"
        ) from error
    except OSError as error:
        raise OpError(REMOTE_COMMAND, f"the agent does not answer on {path}: {error}") from error


def _line(sock: socket.socket) -> bytes:
    received = b""
    while b"\n" not in received:
        piece = sock.recv(1 << 16)
        if not piece or len(received) > REPLY_BYTES:
            raise OpError(REMOTE_COMMAND, "the agent hung up in the middle of an answer")
        received += piece
    return received.partition(b"\n")[0]


def decisions(call: Call) -> Mapping[str, object]:
    """Return the newest decisions in the agent's journal, oldest first; of one server, or of all."""
    args = call.args
    path = args.text_or_none("file") or DECISIONS
    limit, server = args.whole("limit", 1), args.text_or_none("server")
    rows: List[Dict[str, object]] = []
    for name in (path, f"{path}.1"):
        content = files.read(name, FILE_BYTES)
        for line in reversed((content or b"").split(b"\n")):
            row = _object(line)
            if row is not None and server in (None, row.get("server")) and len(rows) < limit:
                rows.append(row)
    return {"decisions": rows[::-1], "there": os.path.exists(path)}


def _object(line: bytes) -> Optional[Dict[str, object]]:
    """Return a line's object; a line that was cut by a power failure is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
