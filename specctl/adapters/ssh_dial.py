"""Gets a socket to sshd's door: over TCP, through a ProxyCommand, or handed in by a jump; then waits for sshd's first word."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO

from specctl.adapters import ssh_refusals
from specctl.adapters.ssh_refusals import Leg

_FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}
PROXY_STOP_LIMIT_S = 2.0


@dataclass(slots=True)
class Proxy:
    """A running ProxyCommand: our end of its two pipes, and what it complains of."""

    sock: socket.socket
    process: subprocess.Popen[bytes]
    complaints: IO[bytes] = field(repr=False)

    def complaint(self) -> str:
        """Return the last line that it wrote to standard error, or how it ended."""
        self.complaints.seek(0)
        lines = self.complaints.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self.process.poll()}"

    def close(self) -> None:
        """End it, gently first."""
        self.sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.1)
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=PROXY_STOP_LIMIT_S)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.complaints.close()


def dial_tcp(leg: Leg, *, limit_s: float) -> socket.socket:
    """Connect to a hop, trying all its addresses within `limit_s`; raise ConnectError that tells why not."""
    settings = leg.settings
    deadline = time.monotonic() + limit_s
    failure: OSError = TimeoutError()
    try:
        family = _FAMILIES.get(settings.address_family, socket.AF_UNSPEC)
        found = socket.getaddrinfo(settings.hostname, settings.port, family, socket.SOCK_STREAM)
    except OSError as error:
        raise ssh_refusals.unreachable(leg, error, limit_s=limit_s) from error
    except UnicodeError as error:  # "a..b" is no name at all
        raise ssh_refusals.unreachable(leg, socket.gaierror(str(error)), limit_s=limit_s) from error
    for kind, _, protocol, _, address in found:
        sock = socket.socket(kind, socket.SOCK_STREAM, protocol)
        try:
            if settings.bind_address:
                sock.bind((settings.bind_address, 0))
            sock.settimeout(max(0.1, deadline - time.monotonic()))
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
            continue
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    raise ssh_refusals.unreachable(leg, failure, limit_s=limit_s) from failure


def start_proxy(leg: Leg, command: str) -> Proxy:
    """Start a ProxyCommand as OpenSSH does: `exec`, by the operator's shell, its pipes being the connection."""
    ours, theirs = socket.socketpair()
    complaints = tempfile.TemporaryFile()  # noqa: SIM115  # closed by Proxy.close
    try:
        process = subprocess.Popen(
            [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command}"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=complaints,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        complaints.close()
        raise ssh_refusals.proxy_failed(leg, error.strerror or str(error)) from error
    finally:
        theirs.close()
    return Proxy(sock=ours, process=process, complaints=complaints)


def await_greeting(leg: Leg, sock: socket.socket, *, limit_s: float, proxy: Proxy | None = None) -> None:
    """Wait until the far end has said something, without taking it; raise ConnectError when it hangs up or stays silent."""
    sock.settimeout(limit_s)
    try:
        greeted = bool(sock.recv(1, socket.MSG_PEEK))
    except TimeoutError as error:
        raise ssh_refusals.silent(leg, limit_s=limit_s) from error
    except OSError:
        greeted = False
    if greeted:
        return
    if proxy is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            proxy.process.wait(timeout=PROXY_STOP_LIMIT_S)
        raise ssh_refusals.proxy_failed(leg, proxy.complaint())
    raise ssh_refusals.closed_at_once(leg)
