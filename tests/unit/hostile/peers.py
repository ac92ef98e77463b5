"""A host in memory: a transport whose engine and session answer with bytes that a test chose."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Wire:
    """A program on the host that answers each line it gets with the next of `replies`, then ends; implements Stream."""

    replies: list[bytes]
    _out: queue.SimpleQueue[bytes] = field(default_factory=queue.SimpleQueue)
    _ended: threading.Event = field(default_factory=threading.Event)

    def write(self, content: bytes) -> None:
        """Answer a request line; the first writing is the program's modules."""
        if self.replies:
            self._out.put(self.replies.pop(0))
        if not self.replies:
            self._end()

    def end_input(self) -> None:
        """End."""
        self._end()

    def _end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._out.put(b"")

    def read(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return a whole reply, however long: the reader cuts lines itself."""
        try:
            found = self._out.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None
        if not found:
            self._out.put(b"")
        return found

    def read_error(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Say nothing."""
        self._ended.wait(timeout_s)
        return b""

    def wait(self, *, timeout_s: float | None = None) -> int:
        """Return how it ended."""
        return 0

    def close(self) -> None:
        """End."""
        self._end()


@dataclass(slots=True)
class Peer:
    """A host whose engine's answer to any call is `answer`, and whose session says `replies`; implements Transport."""

    answer: bytes = b""
    replies: list[bytes] = field(default_factory=list)
    opened: list[Sequence[str]] = field(default_factory=list)

    @property
    def host(self) -> str:
        """Return its name."""
        return "gpu1"

    def open(self, argv: Sequence[str], *, pty: bool = False) -> Wire:
        """Start the session."""
        self.opened.append(argv)
        return Wire(list(self.replies))

    def connect(self, address: str, port: int, *, timeout_s: float) -> socket.socket:
        """Return a connection on which the answer is already there, and that ends after it."""
        ours, theirs = socket.socketpair()
        threading.Thread(target=_say, args=(theirs, self.answer), daemon=True).start()
        return ours

    def close(self) -> None:
        """Hang up."""


def _say(connection: socket.socket, answer: bytes) -> None:
    with connection:
        try:
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except OSError:
            return


def http(body: bytes, status: int = 200) -> bytes:
    """Return a whole HTTP answer."""
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body
