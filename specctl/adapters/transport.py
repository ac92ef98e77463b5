"""The port to one host: everything that specctl does there goes through a Transport (ssh.py, local.py)."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Protocol


class Stream(Protocol):
    """A program running on the host, with its three pipes; bytes in, bytes out.

    Contract: `read` and `read_error` return b"" at the end of file and block otherwise, at most `timeout_s` of silence
    (then TimeoutError); they may be called from different threads. `close` ends our side; the program sees its standard
    input end, and its pipe break if it goes on writing.
    """

    def write(self, content: bytes) -> None:
        """Send all of it; raise ConnectError when the host or the program has gone."""

    def end_input(self) -> None:
        """Close the program's standard input."""

    def read(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return at most `size` bytes of standard output as soon as there are any."""

    def read_error(self, size: int, *, timeout_s: float | None = None) -> bytes:
        """Return at most `size` bytes of standard error as soon as there are any."""

    def wait(self, *, timeout_s: float | None = None) -> int:
        """Return the program's exit status (negative signal number when a signal ended it), or raise TimeoutError."""

    def close(self) -> None:
        """End our side of it; never raises."""


class Transport(Protocol):
    """One connection to one host, shared by all that specctl does there.

    Contract: argv lists only, quoted once inside; `sudo` of the host is applied by `open` (`sudo -n`); errors are ConnectError
    (unreachable, refused, host key, authentication, sudo wants a password) with host and hint set. Thread-safe.
    """

    @property
    def host(self) -> str:
        """The inventory's name of the host."""

    def open(self, argv: Sequence[str], *, pty: bool = False) -> Stream:
        """Start a program on the host."""

    def connect(self, address: str, port: int, *, timeout_s: float) -> socket.socket:
        """Return a stream socket to an address as the host sees it (through SSH: direct-tcpip); ConnectionRefusedError as usual."""

    def close(self) -> None:
        """Hang up; idempotent; streams still open end."""
