"""Talk to a supervisord over its unix socket with the standard library, since starting supervisorctl costs a second."""

from __future__ import annotations

import http.client
import os
import socket
import xmlrpc.client
from typing import Optional

from specctl.host.wire import REMOTE_COMMAND, OpError

TIMEOUT_S = 10.0
BAD_NAME = 10
ALREADY_STARTED = 60
NOT_RUNNING = 70
SPAWN_FAULTS = (20, 21, 50)  # NO_FILE, NOT_EXECUTABLE, SPAWN_ERROR
CANT_REREAD = 92
STILL_RUNNING = 91


class DownError(Exception):
    """No supervisord answers on the socket."""


class FaultError(Exception):
    """Supervisord refused a call; `code` is its own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket in a folder whose path may be longer than a socket's address can be."""

    def __init__(self, folder: str, name: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._folder = folder
        self._name = name

    def connect(self) -> None:
        """Reach the socket through a descriptor of its folder."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(TIMEOUT_S)
            self.sock.connect(f"/proc/self/fd/{descriptor}/{self._name}")
        finally:
            os.close(descriptor)


def call(folder: str, name: str, method: str, *arguments: object) -> object:
    """Call one method of supervisord; raises DownError when none is there and FaultError when it refuses."""
    body = xmlrpc.client.dumps(tuple(arguments), method, allow_none=True)  # type: ignore[arg-type]  # texts and booleans only
    connection = _Connection(folder, name)
    try:
        connection.request("POST", "/RPC2", body.encode(), {"Content-Type": "text/xml"})
        response = connection.getresponse()
        found = response.read()
    except (FileNotFoundError, ConnectionError, NotADirectoryError) as error:
        raise DownError(str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        raise OpError(
            REMOTE_COMMAND,
            f"supervisord does not answer: {error}",
            hint="look at .supervisor/supervisord.log in the state folder",
        ) from error
    finally:
        connection.close()
    if response.status != 200:
        raise OpError(REMOTE_COMMAND, f"supervisord answered HTTP {response.status}")
    try:
        values, _ = xmlrpc.client.loads(found)
    except xmlrpc.client.Fault as fault:
        raise FaultError(fault.faultCode, fault.faultString) from fault
    return values[0]


def reachable(folder: str, name: str) -> Optional[int]:
    """Return the pid of the supervisord that answers, or None."""
    try:
        found = call(folder, name, "supervisor.getPID")
    except DownError:
        return None
    return found if isinstance(found, int) else None
