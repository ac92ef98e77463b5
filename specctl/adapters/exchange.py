"""Runs one program to its end over any Transport: all input in, all output out, no deadlock whichever side is slow."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specctl.adapters.transport import Stream, Transport
from specctl.errors import ConnectError, SpecctlError

PIECE_BYTES = 65536
DEFAULT_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How a program ended: exit status (negative signal number) and all that it wrote."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def error_text(self) -> str:
        """Return standard error as text, stripped."""
        return self.stderr.decode("utf-8", "replace").strip()


class _Collector(threading.Thread):
    """Reads one pipe to its end on a thread of its own; keeps the first `max_bytes` and notes that there were more."""

    def __init__(self, read: Callable[[float | None], bytes], *, deadline: float | None, max_bytes: int) -> None:
        super().__init__(daemon=True, name="specctl-collect")
        self._read = read
        self._deadline = deadline
        self._max_bytes = max_bytes
        self.content = bytearray()
        self.overflowed = False
        self.error: SpecctlError | TimeoutError | None = None

    def run(self) -> None:
        try:
            while piece := self._read(remaining(self._deadline)):
                room = self._max_bytes - len(self.content)
                self.overflowed = self.overflowed or len(piece) > room
                self.content += piece[:room]
        except (SpecctlError, TimeoutError) as error:
            self.error = error


def exchange(
    transport: Transport,
    argv: Sequence[str],
    *,
    content: bytes = b"",
    timeout_s: float | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Exchange:
    """Run a program with `content` as its input and return how it ended, whatever its exit status.

    Raise TimeoutError when the whole takes longer than `timeout_s` (our side is then closed; the program may live on), and
    ConnectError when the host is lost or writes over `max_bytes` on one pipe.
    """
    return finish(transport.open(argv), host=transport.host, content=content, timeout_s=timeout_s, max_bytes=max_bytes)


def finish(
    stream: Stream,
    *,
    host: str,
    content: bytes = b"",
    timeout_s: float | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Exchange:
    """Bring a program that runs to its end, as `exchange` does; closes the stream."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with contextlib.closing(stream):
        collectors = (
            _Collector(lambda left: stream.read(PIECE_BYTES, timeout_s=left), deadline=deadline, max_bytes=max_bytes),
            _Collector(
                lambda left: stream.read_error(PIECE_BYTES, timeout_s=left), deadline=deadline, max_bytes=max_bytes
            ),
        )
        feeder = threading.Thread(target=_feed, args=(stream, content), daemon=True, name="specctl-feed")
        for thread in (*collectors, feeder):
            thread.start()
        for collector in collectors:
            collector.join()
            if collector.error is not None:
                raise collector.error
        status = stream.wait(timeout_s=remaining(deadline))
    if any(collector.overflowed for collector in collectors):
        raise ConnectError(f"a program wrote over {max_bytes} bytes", hint="narrow what is asked of it", host=host)
    return Exchange(status=status, stdout=bytes(collectors[0].content), stderr=bytes(collectors[1].content))


def remaining(deadline: float | None) -> float | None:
    """Return the seconds left until a monotonic deadline, never below zero; None for no deadline."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _feed(stream: Stream, content: bytes) -> None:
    """Give the program its input; one that ends without reading it all is not an error: its exit status tells."""
    with contextlib.suppress(ConnectError):
        if content:
            stream.write(content)
        stream.end_input()
