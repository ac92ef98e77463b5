"""The operator's end of a session: starts the host's program over a Transport, speaks newline-JSON with it (docs/host-session.md).

One session serves all that a command does on a host. Ops may run at the same time from several threads.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from specctl.adapters import session_payload
from specctl.adapters.session_errors import OpCancelledError, of_start, of_wire
from specctl.adapters.transport import Stream, Transport
from specctl.errors import ConnectError, RemoteCommandError, SpecctlError

OnEvent = Callable[[Mapping[str, object]], None]

HELLO_S = 30.0
# The host ends a session that hears nothing for 30 s (host/session.py); we give a silent host up sooner.
PING_PERIOD_S = 5.0
SILENCE_S = 20.0
STEP_S = 0.1
AFTER_CANCEL_S = 10.0
CLOSE_S = 2.0
PIECE_BYTES = 1 << 16
LINE_BYTES = 64 << 20
STDERR_BYTES = 8192


class _Lost:
    """In place of a reply: there will be none."""


_Reply = Mapping[str, object] | _Lost


class HostSession:
    """A session on one host; opened when built, ended by `close` (the host's program then leaves at once)."""

    def __init__(self, transport: Transport, *, python: str = "python3") -> None:
        self._transport = transport
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[_Reply]] = {}
        self._lost: SpecctlError | None = None
        self._refusal: Mapping[str, object] | None = None
        self._errors = bytearray()
        self._heard_s = time.monotonic()
        self._heard_any = False
        self._closed = threading.Event()
        self._stream: Stream = transport.open([python, "-I", "-S", "-c", session_payload.boot()])
        self._threads = [
            threading.Thread(target=work, name=f"specctl-session-{work.__name__}", daemon=True)
            for work in (self._read, self._read_errors, self._beat)
        ]
        for thread in self._threads:
            thread.start()
        try:
            self.hello = self._begin(python)
        except BaseException:
            self.close()
            raise

    def _begin(self, python: str) -> Mapping[str, object]:
        """Send the modules and shake hands; say plainly why a program did not start."""
        try:
            with self._writing:
                self._stream.write(session_payload.modules())
            return self.call("hello", {}, timeout_s=HELLO_S)
        except ConnectError as error:
            if self._heard_any and self._refusal is None:
                raise
            try:
                status = self._stream.wait(timeout_s=CLOSE_S)
            except TimeoutError:
                raise error from None
            # Its last words may still be on their way to both readers, though writing to it has failed already.
            for reader in self._threads[:2]:
                reader.join(CLOSE_S)
            raise of_start(
                status, self.error_tail(), refusal=self._refusal, python=python, host=self._transport.host
            ) from error

    def call(
        self,
        op: str,
        args: Mapping[str, object],
        *,
        on_event: OnEvent | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> Mapping[str, object]:
        """Run one op and return its result; raises the SpecctlError that the host answered, with host set.

        `on_event` gets the op's events in this thread; what it raises cancels the op. `cancel` set by another thread cancels it
        too: `watch` and `logs` then return, other ops raise OpCancelledError. None for `timeout_s`: as long as it takes.
        """
        number = next(self._numbers)
        replies: queue.SimpleQueue[_Reply] = queue.SimpleQueue()
        with self._lock:
            if self._lost is not None:
                raise self._lost
            self._waiting[number] = replies
        try:
            self._send({"id": number, "op": op, "args": dict(args)})
            return self._await(op, number, replies, on_event=on_event, timeout_s=timeout_s, cancel=cancel)
        finally:
            with self._lock:
                unanswered = self._waiting.pop(number, None) is not None
            if unanswered:
                self._cancel(number)

    def _await(
        self,
        op: str,
        number: int,
        replies: queue.SimpleQueue[_Reply],
        *,
        on_event: OnEvent | None,
        timeout_s: float | None,
        cancel: threading.Event | None,
    ) -> Mapping[str, object]:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        cancelled_s: float | None = None
        while True:
            now_s = time.monotonic()
            if deadline is not None and now_s > deadline:
                self._late(op, timeout_s or 0.0)
            if cancel is not None and cancel.is_set() and cancelled_s is None:
                self._cancel(number)
                cancelled_s = now_s
            if cancelled_s is not None and now_s - cancelled_s > AFTER_CANCEL_S:
                raise OpCancelledError(f"{op} was cancelled", host=self._transport.host)
            try:
                reply = replies.get(timeout=STEP_S)
            except queue.Empty:
                continue
            if isinstance(reply, _Lost):
                raise self._gone()
            if not _is_final(reply):
                event = reply.get("event")
                if on_event is not None and isinstance(event, Mapping):
                    on_event(event)
            elif isinstance(result := reply.get("result"), Mapping):
                return result
            else:
                raise of_wire(op, reply.get("error"), host=self._transport.host)

    def cancel(self) -> None:
        """Cancel every op under way; each ends as its own call says."""
        with self._lock:
            numbers = list(self._waiting)
        for number in numbers:
            self._cancel(number)

    def error_tail(self) -> str:
        """Return the end of what the host's program wrote to standard error."""
        return self._errors.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the session; idempotent, never raises."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(SpecctlError, OSError):
            self._stream.end_input()
        with contextlib.suppress(TimeoutError, SpecctlError, OSError):
            self._stream.wait(timeout_s=CLOSE_S)
        self._stream.close()
        self._lose(ConnectError("the session was closed", host=self._transport.host))

    def _late(self, op: str, timeout_s: float) -> NoReturn:
        raise RemoteCommandError(
            f"{op} did not finish within {timeout_s:.0f} s",
            hint=f"specctl status --host {self._transport.host}",
            host=self._transport.host,
        )

    def _gone(self) -> SpecctlError:
        assert self._lost is not None, "a lost reply has a reason"
        return self._lost

    def _send(self, request: Mapping[str, object]) -> None:
        line = json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n"
        with self._writing:
            self._stream.write(line)

    def _cancel(self, number: int) -> None:
        """Ask the host to end an op; one that has ended, or a host that is gone, needs none."""
        with contextlib.suppress(SpecctlError, OSError):
            self._send({"id": 0, "op": "cancel", "args": {"id": number}})

    def _lose(self, reason: SpecctlError) -> None:
        """Tell everyone who waits that there will be no reply."""
        with self._lock:
            self._lost = self._lost or reason
            waiting = list(self._waiting.values())
        for replies in waiting:
            replies.put(_Lost())

    def _read(self) -> None:
        """Deal replies out to those who wait for them, until there are no more."""
        rest = b""
        reason = "the session on the host ended"
        try:
            while part := self._stream.read(PIECE_BYTES):
                self._heard_s = time.monotonic()
                self._heard_any = True
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    self._take(line)
                if len(rest) > LINE_BYTES:
                    reason = "the host sent a line without end"
                    break
        except (SpecctlError, TimeoutError, OSError) as error:
            reason = error.message if isinstance(error, SpecctlError) else str(error)
        tail = self.error_tail().splitlines()
        said = f" ({tail[-1]})" if tail else ""
        self._lose(
            ConnectError(
                f"lost the connection: {reason}{said}",
                hint=f"specctl status --host {self._transport.host}",
                host=self._transport.host,
            )
        )

    def _take(self, line: bytes) -> None:
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            return  # Not ours: a login script that prints, for instance.
        if not isinstance(reply, dict):
            return
        number = reply.get("id")
        if number == 0 and isinstance(reply.get("error"), dict):
            self._refusal = reply["error"]
        with self._lock:
            take = self._waiting.pop if _is_final(reply) else self._waiting.get
            replies = take(number, None) if isinstance(number, int) else None
        if replies is not None:
            replies.put(reply)

    def _read_errors(self) -> None:
        with contextlib.suppress(SpecctlError, TimeoutError, OSError):
            while part := self._stream.read_error(PIECE_BYTES):
                self._errors += part
                del self._errors[:-STDERR_BYTES]

    def _beat(self) -> None:
        """Ping, so that each side learns that the other one is gone though the connection never says so."""
        slept_s = time.monotonic()
        while not self._closed.wait(PING_PERIOD_S):
            now_s = time.monotonic()
            if now_s - slept_s > 2 * PING_PERIOD_S:
                self._heard_s = now_s  # We ourselves were stopped or asleep: not the host's silence.
            slept_s = now_s
            if now_s - self._heard_s > SILENCE_S:
                self._lose(
                    ConnectError(
                        f"the host has not answered for {SILENCE_S:.0f} s",
                        hint=f"specctl status --host {self._transport.host}",
                        host=self._transport.host,
                    )
                )
                return
            with contextlib.suppress(SpecctlError, OSError):
                self._send({"id": next(self._numbers), "op": "ping", "args": {}})


def _is_final(reply: Mapping[str, object]) -> bool:
    """Claim that no other reply to the same request follows."""
    return "result" in reply or "error" in reply
