"""Probe a server's port and its /ready from the host itself, in a thread, so that a silent server holds nothing else up."""

from __future__ import annotations

import re
import socket
import threading
import time
from typing import Callable, List, Optional

from specctl.host import ports

TIMEOUT_S = 2.0
# While it is not ready; then once a second, since every request is a line in the engine's access log.
FAST_S = 0.15
SLOW_S = 1.0
ANSWER_BYTES = 4096
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")
READY = 200


def reach(bind: str) -> str:
    """Return the address at which a server bound so answers on its own host."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(bind, bind)  # noqa: S104  # read, not bound


def ask(connection: socket.socket, host: str) -> Optional[int]:
    """Return the HTTP status of GET /ready, or None when no whole status line comes in time."""
    deadline = time.monotonic() + TIMEOUT_S
    found = b""
    try:
        name = f"[{host}]" if ":" in host else host
        connection.sendall(
            f"GET /ready HTTP/1.1\r\nHost: {name}\r\nUser-Agent: specctl\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        while b"\n" not in found and len(found) < ANSWER_BYTES:
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            part = connection.recv(ANSWER_BYTES)
            if not part or time.monotonic() > deadline:
                break
            found += part
    except OSError:
        return None
    match = STATUS.match(found)
    return int(match.group(1)) if match and b"\n" in found else None


class Prober:
    """Looks at port and /ready again and again; `owner` and `ready` are its last findings, `notify` is called when they change."""

    def __init__(self, address: str, port: int, pids: Callable[[], List[int]], notify: Callable[[], None]) -> None:
        self.owner = ports.Owner(None)
        self.ready: Optional[int] = None
        self._address = address
        self._port = port
        self._pids = pids
        self._notify = notify
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin, in a thread."""
        threading.Thread(target=self._run, name="ready", daemon=True).start()

    def stop(self) -> None:
        """End it; a probe under way is not waited for."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            before = (self.owner.port, self.ready)
            self.look()
            if before != (self.owner.port, self.ready) and not self._stopped.is_set():
                self._notify()
            self._stopped.wait(SLOW_S if self.ready == READY else FAST_S)

    def look(self) -> None:
        """Probe once. A stranger on the port is not asked."""
        try:
            connection: Optional[socket.socket] = socket.create_connection((self._address, self._port), TIMEOUT_S)
        except ConnectionRefusedError:
            self.owner, self.ready = ports.Owner(ports.REFUSED), None
            return
        except OSError:
            connection = None
        owner = ports.owner(self._port, self._pids())
        ready = None
        if connection is not None:
            with connection:
                if owner.port in (ports.OWN, None):
                    ready = ask(connection, self._address)
        self.owner, self.ready = owner, ready
