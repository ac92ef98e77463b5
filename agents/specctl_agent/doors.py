"""The agent's two sockets: opened where they can be, tried again where not; an address that is taken stops no loop."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from specctl_agent.config import Config
from specctl_agent.serving import Serving, Tongue, listen_local, listen_tcp
from specctl_agent.storing import Complaints

SOCKET_MODE = 0o660
AGAIN_S = 30.0
CONTROL = "control socket"
METRICS = "metrics address"


@dataclass(slots=True)
class Doors:
    """The sockets and the thread that serves them."""

    config: Config
    complaints: Complaints
    control: Tongue
    page: Tongue
    _serving: Serving = field(default_factory=Serving)
    _closed: dict[str, float] = field(default_factory=lambda: {CONTROL: 0.0, METRICS: 0.0})

    def open(self) -> None:
        """Begin to serve."""
        self.tend()
        self._serving.start()

    def tend(self) -> None:
        """Open what is not open; the loop calls this each turn."""
        for name, due_s in list(self._closed.items()):
            if time.monotonic() >= due_s:
                self._try(name)

    @property
    def turned_away(self) -> int:
        """Return how many clients were cut off for their manners."""
        return self._serving.turned_away

    @property
    def port(self) -> int | None:
        """Return the port of the metrics page; None while it is not open."""
        return self._serving.port

    def close(self) -> None:
        """Stop serving, and take the socket file away."""
        self._serving.close()
        with contextlib.suppress(OSError):
            Path(self.config.socket).unlink()

    def _try(self, name: str) -> None:
        opens: dict[str, tuple[Callable[[], socket.socket], Tongue]] = {
            CONTROL: (lambda: listen_local(self.config.socket, mode=SOCKET_MODE), self.control),
            METRICS: (lambda: listen_tcp(self.config.address, self.config.port), self.page),
        }
        listen, tongue = opens[name]
        try:
            listener = listen()
        except OSError as error:
            self._closed[name] = time.monotonic() + AGAIN_S
            self.complaints.trouble(name, f"cannot be opened: {error.strerror or error}")
            return
        del self._closed[name]
        self._serving.add(listener, tongue)
        self.complaints.over(name)
