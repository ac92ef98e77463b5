"""Makes an ordinary socket out of a channel of an SSH connection, so that http.client, select and timeouts work on it.

Two threads carry the bytes, one a direction, each blocking: a slow reader slows its own direction alone.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Protocol

PIECE_BYTES = 65536


class ByteChannel(Protocol):
    """What a relay needs of a channel; closing it ends a `recv` that waits."""

    def recv(self, nbytes: int) -> bytes:
        """Return what has come, b"" at the end."""

    def sendall(self, s: bytes) -> None:
        """Send all of it; OSError when the channel is closed."""

    def shutdown_write(self) -> None:
        """Tell the other side that nothing more will come."""

    def close(self) -> None:
        """Close both directions."""


Faults = tuple[type[Exception], ...]


def relay(channel: ByteChannel, *, name: str, faults: Faults) -> socket.socket:
    """Return a socket whose other end is the channel; closing it closes the channel; `faults`: what a broken channel raises."""
    theirs, ours = socket.socketpair()
    down = threading.Thread(target=_carry_down, args=(channel, ours, faults), daemon=True, name=f"specctl-down-{name}")
    up = threading.Thread(target=_carry_up, args=(channel, ours, down, faults), daemon=True, name=f"specctl-up-{name}")
    down.start()
    up.start()
    return theirs


def _carry_down(channel: ByteChannel, ours: socket.socket, faults: Faults) -> None:
    with contextlib.suppress(OSError, *faults):
        while piece := channel.recv(PIECE_BYTES):
            ours.sendall(piece)
        ours.shutdown(socket.SHUT_WR)


def _carry_up(channel: ByteChannel, ours: socket.socket, down: threading.Thread, faults: Faults) -> None:
    with contextlib.suppress(OSError, *faults):
        while piece := ours.recv(PIECE_BYTES):
            channel.sendall(piece)
        channel.shutdown_write()
    _wait_for_hang_up(ours)
    with contextlib.suppress(OSError, *faults):
        channel.close()
    down.join()
    ours.close()


def _wait_for_hang_up(ours: socket.socket) -> None:
    """Wait until the user's end is closed altogether, not for writing alone."""
    poller = select.poll()
    poller.register(ours, 0)
    poller.poll()
