"""A program running at the far end of an SSH channel, as a Stream; knows channels by their shape alone, not by library."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from typing import Protocol

from specctl.adapters import ssh_refusals
from specctl.errors import ConnectError

# A channel has one timeout for all its users, so it ticks, and each call counts its own time; arriving bytes wake it at once.
TICK_S = 0.1
WRITE_PIECE_BYTES = 32768
# What ssh itself returns when a program ended in a way that has no number (a signal that the protocol does not name).
STATUS_UNTOLD = 255
NO_STATUS_YET = -1


class ProgramChannel(Protocol):
    """What a stream needs of a session channel."""

    eof_received: int
    exit_status: int
    status_event: threading.Event

    def recv(self, nbytes: int) -> bytes:
        """Return standard output that has come; TimeoutError after a tick."""

    def recv_stderr(self, nbytes: int) -> bytes:
        """Return standard error that has come; TimeoutError after a tick."""

    def send(self, s: bytes) -> int:
        """Send a beginning of it and return its length; 0 or OSError when closed; TimeoutError after a tick."""

    def shutdown_write(self) -> None:
        """Close standard input."""

    def close(self) -> None:
        """Close the channel."""


class SshStream:
    """A Stream over one session channel whose timeout is TICK_S.

    `signal_name` tells the signal that ended the program; `faults`: what a broken channel raises.
    """

    def __init__(
        self,
        channel: ProgramChannel,
        *,
        host: str,
        signal_name: Callable[[], str | None],
        faults: tuple[type[Exception], ...],
    ) -> None:
        self._channel = channel
        self._host = host
        self._signal_name = signal_name
        self._faults = faults
        self._hung_up = False

    def write(self, content: bytes) -> None:
        """Send all of it; raise ConnectError when the host or the program has gone."""
        offset = 0
        while offset < len(content):
            try:
                sent = self._channel.send(content[offset : offset + WRITE_PIECE_BYTES])
            except TimeoutError:
                continue
            except self._faults as error:
                raise self._gone() from error
            if sent == 0:
                raise self._gone()
            offset += sent

    def end_input(self) -> None:
        """Close the program's standard input."""
        with contextlib.suppress(*self._faults):
            self._channel.shutdown_write()

    def read(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return at most `size` bytes of standard output as soon as there are any."""
        return self._receive(self._channel.recv, size, timeout_s)

    def read_error(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return at most `size` bytes of standard error as soon as there are any."""
        return self._receive(self._channel.recv_stderr, size, timeout_s)

    def wait(self, *, timeout_s: float | None = None) -> int:
        """Return the program's exit status (negative signal number when a signal ended it), or raise TimeoutError."""
        if not self._channel.status_event.wait(timeout_s):
            raise TimeoutError(f"{self._host}: the program is still running after {timeout_s:g} s")
        if self._channel.exit_status != NO_STATUS_YET:
            return self._channel.exit_status
        name = self._signal_name()
        if name is None:
            raise ssh_refusals.lost(self._host)
        try:
            return -signal.Signals[f"SIG{name}"].value
        except KeyError:
            return STATUS_UNTOLD

    def close(self) -> None:
        """End our side of it; never raises."""
        self._hung_up = True
        with contextlib.suppress(*self._faults):
            self._channel.close()

    def _receive(self, receive: Callable[[int], bytes], size: int, timeout_s: float | None) -> bytes:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                content = receive(size)
            except TimeoutError:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError(f"{self._host}: no output for {timeout_s:g} s") from None
                continue
            except self._faults as error:
                if self._hung_up:
                    return b""
                raise ssh_refusals.lost(self._host) from error
            if not content and self._was_lost():
                raise ssh_refusals.lost(self._host)
            return content

    def _was_lost(self) -> bool:
        """Tell an end that the host declared from a connection that broke: a host always says how the program ended."""
        channel = self._channel
        declared = bool(channel.eof_received) or channel.exit_status != NO_STATUS_YET or self._signal_name() is not None
        return not declared and not self._hung_up

    def _gone(self) -> ConnectError:
        if self._was_lost():
            return ssh_refusals.lost(self._host)
        return ConnectError(
            "the program ended before it had read all of its input",
            hint="look at what it wrote to standard error",
            host=self._host,
        )
