"""Tell systemd how the agent is (sd_notify): ready, alive, in words, on its way out; nothing is told where nobody listens."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping

STATUS_CHARS = 200


class Notify:
    """Speaks to the socket that systemd named; a message that cannot be sent is dropped, since the watchdog will say so."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET")
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address
        self.watchdog_s = _watchdog_s(environ)

    def ready(self, status: str) -> None:
        """Say that start-up is over."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def alive(self, status: str) -> None:
        """Feed the watchdog, and show the status in `systemctl status`."""
        self._send(f"WATCHDOG=1\nSTATUS={_line(status)}")

    def stopping(self) -> None:
        """Say that the agent ends because it was asked to."""
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
        ):
            sock.settimeout(0.0)
            sock.sendto(text.encode("utf-8", "replace"), self._address)


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    """Return within which time systemd wants to hear from this very process, or None."""
    wanted, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(os.getpid()))
    return int(wanted) / 1e6 if wanted.isdecimal() and int(wanted) > 0 and pid == str(os.getpid()) else None


def _line(text: str) -> str:
    return " ".join(text.split())[:STATUS_CHARS]
