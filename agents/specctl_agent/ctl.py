"""`specctl-agent ctl`: speak with the agent on this host, for people who are on it; the operator's way is `specctl agent`."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence

from specctl.control import wire
from specctl.errors import ConnectError, SpecctlError, UsageError
from specctl_agent.config import RUN, SOCKET

LIMIT_S = 10.0
USAGE = """usage: specctl-agent ctl [--socket PATH] [--server NAME] REQUEST
  status                               how the agent is, and what it decided
  snapshot                             the newest sample of every source
  why [N]                              the newest decisions
  history [N]                          the load of the last N seconds
  pin MODE SECONDS REASON…             keep a mode, such as dflash or ddtree:tree_budget=16
  unpin                                let the agent decide again
  hold REASON…                         act on nothing
  resume                               end a hold, and a freeze
  mode observe|advise|act|inventory    how far the agent may go
"""


def run(words: Sequence[str], who: str) -> int:
    """Put one request and print its answer as JSON; returns the exit code."""
    try:
        path, server, rest = _options(list(words))
        result = put(wire_request(rest, server, who), path)
    except SpecctlError as error:
        sys.stderr.write(f"error: {error}\n" + (f"  try: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0


def put(request: wire.Request, path: str) -> object:
    """Put a request to the socket; raises ConnectError where nobody answers, and what the agent refuses with."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(LIMIT_S)
            sock.connect(path)
            sock.sendall(wire.encode(request))
            with sock.makefile("rb") as reader:
                line = reader.readline(wire.REPLY_BYTES + 1)
    except PermissionError as error:
        raise ConnectError(f"{path} is closed to you", hint="be root, or in the group specctl") from error
    except OSError as error:
        raise ConnectError(f"no agent answers on {path} ({error})", hint="systemctl status specctl-agent") from error
    return wire.result_of(line)


def wire_request(words: Sequence[str], server: str | None, who: str) -> wire.Request:
    """Read a request as people type it; raises UsageError."""
    fields: dict[str, object]
    match list(words):
        case ["status" | "snapshot" | "unpin" | "resume" as op]:
            fields = {}
        case ["why" as op, *count] if len(count) <= 1:
            fields = {"limit": _number(count[0]) if count else 1}
        case ["history" as op, *count] if len(count) <= 1:
            fields = {"points": _number(count[0]) if count else 60}
        case ["pin" as op, mode, seconds, *reason]:
            fields = {"mode": mode, "for_s": _number(seconds), "reason": " ".join(reason)}
        case ["hold" as op, *reason]:
            fields = {"reason": " ".join(reason)}
        case ["mode" as op, conduct]:
            fields = {"conduct": None if conduct == "inventory" else conduct}
        case _:
            raise UsageError(f"{' '.join(words)[:80] or 'nothing'} is no request", hint="specctl-agent ctl --help")
    body = {"v": f"{wire.MAJOR}.{wire.MINOR}", "op": op, "server": server, "who": who, **fields}
    return wire.decode(json.dumps(body).encode())


def _options(words: list[str]) -> tuple[str, str | None, list[str]]:
    path, server = str(RUN / SOCKET), None
    while words and words[0].startswith("--"):
        if len(words) < 2 or words[0] not in ("--socket", "--server"):
            raise UsageError(f"{words[0]} is no option, or lacks its value", hint="specctl-agent ctl --help")
        if words[0] == "--socket":
            path = words[1]
        else:
            server = words[1]
        words = words[2:]
    return path, server, words


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{text[:40]!r} is no whole number", hint="specctl-agent ctl --help")
    return int(text)
