"""The session: reads requests from standard input, runs each in a thread, writes replies; ends at once when its input ends.

Nothing here outlives the operator's command: a lost connection is an ended input, or silence for longer than `silence_s`. The
unit is left as it is, and leases run out by themselves.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import select
import sys
import threading
import time
from typing import Dict, Mapping, Tuple

from specctl.host import commands, keeper, together
from specctl.host.wire import INTERNAL, REMOTE_COMMAND, USAGE, Args, Call, OpError, Replies

# op -> (module, function, whether it changes something and so needs the lease).
OPS: Mapping[str, Tuple[str, str, bool]] = {
    "hello": ("hello", "hello", False),
    "ping": ("hello", "ping", False),
    "facts": ("facts", "facts", False),
    "look": ("look", "look", False),
    "probe": ("probe", "probe", False),
    "lease.acquire": ("keeper", "acquire", False),
    "lease.release": ("keeper", "release", False),
    "lease.status": ("keeper", "status", False),
    "release.write": ("releases", "write", True),
    "release.list": ("releases", "listing", False),
    "release.read": ("releases", "read", False),
    "release.verify": ("releases", "verify", False),
    "release.prune": ("releases", "prune", True),
    "release.activate": ("activate", "activate", True),
    "unit.state": ("unit", "state", False),
    "unit.start": ("unit", "start", True),
    "unit.stop": ("stopping", "stop", True),
    "unit.reset_failed": ("unit", "reset_failed", True),
    "unit.disable": ("unit", "disable", True),
    "unit.disable_remove": ("unit", "disable_remove", True),
    "guard.arm": ("guard", "arm", True),
    "guard.disarm": ("guard", "disarm", True),
    "guard.status": ("guard", "status", False),
    "watch": ("watch", "watch", False),
    "logs": ("logs", "logs", False),
    "record.append": ("records", "append", False),
    "record.read": ("records", "read", False),
    "agent.look": ("agent_place", "look", False),
    "agent.put": ("agent_wheels", "put", False),
    "agent.build": ("agent_wheels", "build", False),
    "agent.activate": ("agent_service", "activate", False),
    "agent.remove": ("agent_service", "remove", False),
    "agent.compare": ("agent_note", "compare", False),
    "agent.note": ("agent_note", "write", True),
    "agent.ask": ("agent_socket", "ask", False),
    "agent.decisions": ("agent_socket", "decisions", False),
}
SILENCE_S = 30.0
REQUEST_BYTES = 32 << 20
CALLS_AT_ONCE = 16
HINTS = {
    errno.ENOSPC: "free some space there and run the command again",
    errno.EDQUOT: "free some space there and run the command again",
    errno.EROFS: "the file system is mounted read-only: see dmesg, then remount it",
    errno.EACCES: "set sudo: true for the host, or give the user that folder",
    errno.EPERM: "set sudo: true for the host, or give the user that folder",
}


class Session:
    """The calls under way and where their replies go."""

    def __init__(self, replies: Replies) -> None:
        self.replies = replies
        self._lock = threading.Lock()
        self._calls: Dict[int, Call] = {}

    def take(self, line: bytes) -> None:
        """Begin the call of one request line; a cancel has no reply of its own (the call that it ends replies)."""
        try:
            request = json.loads(line)
            number = int(request["id"])
            op = str(request["op"])
            args = Args(request.get("args") or {})
        except (ValueError, KeyError, TypeError):
            threading.Thread(target=self._refuse, args=(0, "no request of this protocol"), daemon=True).start()
            return
        if op == "cancel":
            with self._lock:
                found = self._calls.get(args.whole("id", 0))
            if found is not None:
                found.cancelled.set()
            return
        call = Call(number, args, lambda event: self.replies.send(number, "event", event))
        with self._lock:
            full = len(self._calls) >= CALLS_AT_ONCE
            if not full:
                self._calls[number] = call
        if full:
            threading.Thread(target=self._refuse, args=(number, "too many calls at once"), daemon=True).start()
            return
        threading.Thread(target=self._run, args=(op, call), name=op, daemon=True).start()

    def _refuse(self, number: int, message: str) -> None:
        self._send(number, "error", OpError(USAGE, message).as_wire())

    def _send(self, number: int, key: str, value: Mapping[str, object]) -> None:
        try:
            self.replies.send(number, key, value)
        except OSError:
            leave()

    def _run(self, op: str, call: Call) -> None:
        try:
            key, value = "result", perform(op, call)
        except OpError as error:
            key, value = "error", error.as_wire()
        except BrokenPipeError:
            leave()
        except OSError as error:
            key, value = "error", _of_system(op, error).as_wire()
        except Exception:  # noqa: BLE001  # the boundary of the session: whatever it is, the operator has to see it
            import traceback  # It loads a tokenizer, and is hardly ever needed.

            last = traceback.format_exc(limit=-4)
            key, value = "error", OpError(INTERNAL, f"{op} failed on the host", output=last).as_wire()
        with self._lock:
            self._calls.pop(call.number, None)
        self._send(call.number, key, value)


def _of_system(op: str, error: OSError) -> OpError:
    return OpError(REMOTE_COMMAND, f"{op}: {together.words(error)}", hint=HINTS.get(error.errno or 0))


def perform(op: str, call: Call) -> Mapping[str, object]:
    """Run one op to its result; only its own modules are imported."""
    found = OPS.get(op)
    if found is None:
        raise OpError(USAGE, f"no op named {op}")
    module, function, changes = found
    if changes:
        keeper.require(call.args)
    result = getattr(importlib.import_module(f"specctl.host.{module}"), function)(call)
    assert isinstance(result, dict)
    return result


def leave() -> None:
    """End the session now: programs that it started for itself are killed, the server is left alone."""
    commands.end_all()
    os._exit(0)


def serve(session: Session, silence_s: float) -> None:
    """Take requests until the input ends or says nothing for too long."""
    buffer = b""
    heard_s = time.monotonic()
    while True:
        readable, _, _ = select.select([0], [], [], min(1.0, silence_s))
        now_s = time.monotonic()
        if not readable:
            if now_s - heard_s > silence_s:
                return
            continue
        part = os.read(0, 1 << 16)
        if not part:
            return
        heard_s = now_s
        *lines, buffer = (buffer + part).split(b"\n")
        for line in lines:
            if line.strip():
                session.take(line)
        if len(buffer) > REQUEST_BYTES:
            return


def main(silence_s: float = SILENCE_S) -> None:
    """Run the session; what a child or a library prints by mistake goes to standard error, never between the replies."""
    replies = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    serve(Session(Replies(replies)), silence_s)
    leave()
