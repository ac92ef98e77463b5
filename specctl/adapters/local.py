"""The transport to this very machine: programs run as children in sessions of their own, so that a Ctrl-C of ours is not theirs."""

from __future__ import annotations

import contextlib
import errno
import getpass
import os
import pty
import select
import socket
import subprocess
import threading
import time
import weakref
from collections.abc import Sequence

from specctl.adapters.exchange import finish, remaining
from specctl.adapters.quoting import command_line
from specctl.adapters.sudo import PROBE, SUDO_LIMIT_S, SudoGate, as_root, sudo_refusal
from specctl.adapters.transport import Stream
from specctl.errors import ConnectError
from specctl.fleet.types import Host

# A waiting call looks this often whether its pipe was closed by another thread, which must not pull the descriptor from under it.
TICK_S = 0.1
END_OF_INPUT_KEY = b"\x04"


class _Pipe:
    """Our end of a pipe or terminal, which another thread may close while one waits on it."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._closing = False
        self._closed = False

    def read(self, size: int, deadline: float | None) -> bytes | None:
        """Return what there is, b"" at the end or when closed, None at the deadline."""
        while True:
            left = remaining(deadline)
            with self._lock:
                if self._closing:
                    return b""
                if self._ready(select.POLLIN, TICK_S if left is None else min(left, TICK_S)):
                    return self._take(size)
            if left == 0.0:
                return None

    def write(self, content: bytes) -> None:
        """Send all of it; OSError when nobody can read it any more."""
        view = memoryview(content)
        while view:
            with self._lock:
                if self._closing:
                    raise BrokenPipeError(errno.EPIPE, "the pipe is closed")
                if self._ready(select.POLLOUT, TICK_S):
                    with contextlib.suppress(BlockingIOError):
                        view = view[os.write(self._descriptor, view) :]

    def close(self) -> None:
        """Close it; idempotent."""
        self._closing = True
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)

    def _ready(self, event: int, limit_s: float) -> bool:
        poller = select.poll()
        poller.register(self._descriptor, event)
        return bool(poller.poll(limit_s * 1000))

    def _take(self, size: int) -> bytes:
        try:
            return os.read(self._descriptor, size)
        except OSError:
            # A terminal whose last program has gone says EIO for the end of file.
            return b""


class LocalStream:
    """A Stream over a child process; at a terminal, both its outputs come as one."""

    def __init__(self, process: subprocess.Popen[bytes], *, host: str, pipes: Sequence[int]) -> None:
        self._process = process
        self._host = host
        self._at_terminal = len(pipes) == 1
        self._pipes = tuple(_Pipe(descriptor) for descriptor in pipes)

    def write(self, content: bytes) -> None:
        """Send all of it; raise ConnectError when the program has gone."""
        try:
            self._pipes[0].write(content)
        except OSError as error:
            raise ConnectError(
                "the program ended before it had read all of its input",
                hint="look at what it wrote to standard error",
                host=self._host,
            ) from error

    def end_input(self) -> None:
        """Close the program's standard input (at a terminal: type Ctrl-D)."""
        if self._at_terminal:
            with contextlib.suppress(OSError):
                self._pipes[0].write(END_OF_INPUT_KEY)
        else:
            self._pipes[0].close()

    def read(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return at most `size` bytes of standard output as soon as there are any."""
        return self._receive(self._pipes[0 if self._at_terminal else 1], size, timeout_s)

    def read_error(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return at most `size` bytes of standard error as soon as there are any; none at a terminal."""
        return b"" if self._at_terminal else self._receive(self._pipes[2], size, timeout_s)

    def wait(self, *, timeout_s: float | None = None) -> int:
        """Return the program's exit status (negative signal number when a signal ended it), or raise TimeoutError."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self._host}: the program is still running after {timeout_s:g} s") from None

    def close(self) -> None:
        """End our side of it; the program is collected when it ends."""
        for pipe in self._pipes:
            pipe.close()
        if self._process.poll() is None:
            threading.Thread(target=self._process.wait, daemon=True, name="specctl-reap").start()

    def _receive(self, pipe: _Pipe, size: int, timeout_s: float | None) -> bytes:
        content = pipe.read(size, None if timeout_s is None else time.monotonic() + timeout_s)
        if content is None:
            raise TimeoutError(f"{self._host}: no output for {timeout_s:g} s")
        return content


class LocalTransport:
    """A Transport to this machine."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._streams: weakref.WeakSet[LocalStream] = weakref.WeakSet()
        self._sudo = SudoGate(self._probe_sudo)

    @property
    def host(self) -> str:
        """The inventory's name of the host."""
        return self._host.name

    def open(self, argv: Sequence[str], *, pty: bool = False) -> Stream:
        """Start a program, as root where the inventory says sudo."""
        if self._host.sudo:
            self._sudo.require()
            argv = as_root(argv)
        return self._start(argv, at_terminal=pty)

    def connect(self, address: str, port: int, *, timeout_s: float) -> socket.socket:
        """Return a connected socket."""
        return socket.create_connection((address, port), timeout=timeout_s)

    def close(self) -> None:
        """End our side of all that still runs; idempotent."""
        for stream in tuple(self._streams):
            stream.close()

    def _start(self, argv: Sequence[str], *, at_terminal: bool) -> LocalStream:
        # By way of sh, as over SSH: a program that is not there is status 127 and a word on standard error on both ways.
        program: list[str | bytes] = ["/bin/sh", "-c", command_line(argv)]
        stream = self._start_at_terminal(program) if at_terminal else self._start_piped(program)
        self._streams.add(stream)
        return stream

    def _start_piped(self, program: Sequence[str | bytes]) -> LocalStream:
        process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = [os.dup(pipe.fileno()) for pipe in (process.stdin, process.stdout, process.stderr)]
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        return LocalStream(process, host=self.host, pipes=pipes)

    def _start_at_terminal(self, program: Sequence[str | bytes]) -> LocalStream:
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return LocalStream(process, host=self.host, pipes=(ours,))

    def _probe_sudo(self) -> ConnectError | None:
        stream = self._start(PROBE, at_terminal=False)
        return sudo_refusal(
            finish(stream, host=self.host, timeout_s=SUDO_LIMIT_S), host=self.host, user=getpass.getuser()
        )
