"""Serve short questions on local sockets, all from one thread that waits for nobody: the control socket and the metrics page.

A client that is slow, silent, endless or gone costs its own connection alone. What answers must do so from memory, at once.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MOST_CONNECTIONS = 16
# Longer than any honest client on this machine pauses in the middle of a question or an answer.
PATIENCE_S = 5.0
POLL_S = 1.0
PIECE_BYTES = 1 << 16
BACKLOG = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """An answer: its bytes, how many bytes of the question it used up, and whether the connection ends with it."""

    content: bytes
    used: int
    last: bool = False


class Tongue(Protocol):
    """What is spoken on a socket. Contract: never blocks, never raises for what a client sent."""

    @property
    def limit_bytes(self) -> int:
        """Return the longest question that is listened to."""

    def answer(self, received: bytes) -> Spoken | None:
        """Answer the first question in what was received, or None while it is not whole."""

    def overlong(self) -> bytes:
        """Return the last word to a client whose question is too long."""


@dataclass(slots=True)
class _Line:
    """One connection: what was received and not answered, what is still to be sent, and when it last moved."""

    tongue: Tongue
    moved_s: float
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    last: bool = False


class Serving:
    """The thread that serves; `start`, then `close`. `turned_away` counts connections that were cut off for their manners."""

    def __init__(
        self, listeners: Sequence[tuple[socket.socket, Tongue]] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._lines: dict[socket.socket, _Line] = {}
        self._tongues: dict[socket.socket, Tongue] = {}
        self._wake, self._woken = socket.socketpair()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="serving", daemon=True)
        self.turned_away = 0
        self._new: list[tuple[socket.socket, Tongue]] = list(listeners)
        self._woken.settimeout(0.0)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def add(self, listener: socket.socket, tongue: Tongue) -> None:
        """Serve one more socket; from any thread."""
        self._new.append((listener, tongue))
        self._wake.send(b"\0")

    @property
    def port(self) -> int | None:
        """Return the port of the newest TCP listener; None where there is none."""
        listeners = [sock for sock, _ in self._new] + list(self._tongues)
        ports = [sock.getsockname()[1] for sock in listeners if sock.family is not socket.AF_UNIX]
        return int(ports[-1]) if ports else None

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving and close every socket; idempotent."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._wake.send(b"\0")
        if self._thread.ident is not None:
            self._thread.join()
        self._selector.close()
        for sock in (*self._lines, *self._tongues, *(sock for sock, _ in self._new), self._wake, self._woken):
            sock.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._begin()
            for key, events in self._selector.select(POLL_S):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock in self._tongues:
                    self._accept(sock)
                elif sock in self._lines:
                    self._move(sock, events)
                elif sock is self._woken:
                    sock.recv(PIECE_BYTES)
            self._hang_up_on_the_slow()

    def _begin(self) -> None:
        """Take up listeners that were added."""
        while self._new:
            listener, tongue = self._new.pop()
            listener.settimeout(0.0)
            self._tongues[listener] = tongue
            self._selector.register(listener, selectors.EVENT_READ)

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return  # It left before it was let in, or we are out of descriptors: the next poll tries again.
        if len(self._lines) >= MOST_CONNECTIONS:
            self._drop(min(self._lines, key=lambda each: self._lines[each].moved_s))
            self.turned_away += 1
        sock.settimeout(0.0)
        self._lines[sock] = _Line(tongue=self._tongues[listener], moved_s=self._clock())
        self._selector.register(sock, selectors.EVENT_READ)

    def _move(self, sock: socket.socket, events: int) -> None:
        """Take what has come, answer what is whole, send what can be sent; a connection that ended or broke is dropped."""
        line = self._lines[sock]
        try:
            if events & selectors.EVENT_READ and not line.unsent:
                piece = sock.recv(PIECE_BYTES)
                if not piece:
                    self._drop(sock)
                    return
                line.received += piece
            self._answer(line)
            while line.unsent:
                sent = sock.send(line.unsent)
                del line.unsent[:sent]
                self._answer(line)
            line.moved_s = self._clock()
        except BlockingIOError:
            pass
        except OSError:
            self._drop(sock)
            return
        if line.last and not line.unsent:
            self._drop(sock)
            return
        self._selector.modify(sock, selectors.EVENT_WRITE if line.unsent else selectors.EVENT_READ)

    def _answer(self, line: _Line) -> None:
        """Answer one question at a time, so that a client that does not read cannot make us hold many answers."""
        if line.unsent or line.last:
            return
        spoken = line.tongue.answer(bytes(line.received))
        if spoken is not None:
            line.unsent += spoken.content
            line.last = spoken.last
            del line.received[: spoken.used]
        elif len(line.received) > line.tongue.limit_bytes:
            line.unsent += line.tongue.overlong()
            line.last = True
            self.turned_away += 1

    def _hang_up_on_the_slow(self) -> None:
        now_s = self._clock()
        for sock in [each for each, line in self._lines.items() if now_s - line.moved_s > PATIENCE_S]:
            self._drop(sock)
            self.turned_away += 1

    def _drop(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._lines[sock]
        # What is left unread would reset the connection before the client has read our last word.
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        sock.close()


def listen_local(path: str, *, mode: int) -> socket.socket:
    """Listen on a socket file, replacing one that a dead agent left; raises OSError."""
    Path(path).unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o777 & ~mode)
        try:
            sock.bind(path)
        finally:
            os.umask(before)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def listen_tcp(address: str, port: int) -> socket.socket:
    """Listen on an address; raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
