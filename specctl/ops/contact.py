"""A contact: one host reached, with its transport and session; opened in parallel, closed together, each failure kept apart."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from specctl.adapters.connect import open_transport
from specctl.adapters.redaction import Redactor
from specctl.adapters.session import HostSession
from specctl.adapters.transport import Transport
from specctl.errors import ConnectError, SpecctlError
from specctl.fleet.types import Host, Server, ServiceManager, Via
from specctl.rollout import unit

PARALLEL_HOSTS = 64
UNIT_DIR = "/etc/systemd/system"

T = TypeVar("T")


def operator() -> str:
    """Return who acts, as records and leases name it: user@machine."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


@dataclass(slots=True)
class Contact:
    """One host that answers; `call` speaks to its session. `program`: in whose name it acts where that is no person.

    `ended`: the command hangs up for good, and nothing dials anew.
    """

    host: Host
    transport: Transport
    session: HostSession
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    program: str | None = None
    ended: bool = False
    _reopening: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def who(self) -> str:
        """Return who acts, for leases and records."""
        return self.program or operator()

    def call(
        self,
        op: str,
        server: Server,
        args: Mapping[str, object] | None = None,
        *,
        on_event: Callable[[Mapping[str, object]], None] | None = None,
        timeout_s: float | None = 60.0,
        cancel: threading.Event | None = None,
    ) -> Mapping[str, object]:
        """Run one op of the host's session for a server; raises the SpecctlError that the host answered, with host set."""
        whole = {
            "server": server.name,
            "dir": str(unit.server_dir(self.host, server.name)),
            "manager": manager(self.host, server),
            "port": server.port,
            "bind": server.bind,
            **(args or {}),
        }
        return self.session.call(op, whole, on_event=on_event, timeout_s=timeout_s, cancel=cancel)

    def reopen(self, stale: HostSession) -> None:
        """Dial anew in place of a session that is lost, unless another thread has done so; raises ConnectError."""
        with self._reopening:
            if self.ended:
                raise ConnectError("the command has hung up", host=self.host.name)
            if self.session is not stale:
                return
            self.close()
            fresh = contact(self.host)
            self.transport, self.session = fresh.transport, fresh.session

    def close(self) -> None:
        """Hang up."""
        self.session.close()
        self.transport.close()


def manager(host: Host, server: Server) -> Mapping[str, object]:
    """Return how the host's session finds the server's service."""
    if host.manager is ServiceManager.SYSTEMD:
        unit_dir = os.environ.get("SPECCTL_UNIT_DIR", UNIT_DIR)
        return {"kind": "systemd", "unit": unit.unit_name(server.name), "unit_dir": unit_dir}
    here = host.via is Via.LOCAL and "/" not in host.python
    python = sys.executable if here else host.python
    return {
        "kind": "supervisor",
        "program": unit.program_name(server.name),
        "home": str(host.state_dir),
        "python": python,
    }


def contact(host: Host) -> Contact:
    """Reach one host; raises ConnectError or UnsupportedError."""
    transport = open_transport(host)
    try:
        session = HostSession(transport, python=host.python)
    except BaseException:
        transport.close()
        raise
    return Contact(host=host, transport=transport, session=session)


def in_parallel(work: Callable[[T], object], items: Sequence[T], *, leave: bool = False) -> None:
    """Run the work for every item at once; what it raises is its own affair (it must catch), a bug is raised here.

    `leave`: a Ctrl-C is raised at once, while the work goes on to its own end.
    """
    if not items:
        return
    pool = ThreadPoolExecutor(max_workers=min(PARALLEL_HOSTS, len(items)), thread_name_prefix="specctl-host")
    left = False
    try:
        for future in [pool.submit(work, item) for item in items]:
            future.result()
    except KeyboardInterrupt:
        left = leave
        raise
    finally:
        pool.shutdown(wait=not left, cancel_futures=left)


@contextlib.contextmanager
def contacts(hosts: Sequence[Host], *, program: str | None = None) -> Iterator[Mapping[str, Contact | SpecctlError]]:
    """Reach all hosts at once; yields what came of each, by the host's name, and hangs up at the end."""
    found: dict[str, Contact | SpecctlError] = {}

    def reach(host: Host) -> None:
        try:
            reached = contact(host)
            reached.program = program
            found[host.name] = reached
        except SpecctlError as error:
            error.host = error.host or host.name
            found[host.name] = error

    try:
        in_parallel(reach, list({host.name: host for host in hosts}.values()))
        yield found
    finally:
        in_parallel(_end, [one for one in found.values() if isinstance(one, Contact)])


def _end(one: Contact) -> None:
    one.ended = True
    one.close()


def tried(
    reached: Mapping[str, Contact | SpecctlError],
    selected: Sequence[tuple[Host, Server]],
    work: Callable[[Contact, Server], T],
    *,
    leave: bool = False,
) -> Mapping[tuple[str, str], T | SpecctlError]:
    """Do the work on every selected server in parallel; returns what came of each, in the order of selection.

    A SpecctlError where the host was not reached or the work failed, with the host's name. `leave`: as of `in_parallel`.
    """
    found: dict[tuple[str, str], T | SpecctlError] = {}

    def one(pair: tuple[Host, Server]) -> None:
        host, server = pair
        reached_one = reached[host.name]
        try:
            if isinstance(reached_one, SpecctlError):
                raise reached_one
            found[host.name, server.name] = work(reached_one, server)
        except SpecctlError as error:
            error.host = error.host or host.name
            found[host.name, server.name] = error

    in_parallel(one, list(selected), leave=leave)
    return {(host.name, server.name): found[host.name, server.name] for host, server in selected}


def each(
    selected: Sequence[tuple[Host, Server]], work: Callable[[Contact, Server], object]
) -> Mapping[tuple[str, str], object]:
    """Reach the hosts, do the work on every selected server in parallel and hang up; returns what came of each, as `tried`.

    For work that only looks: a Ctrl-C waits for none of it, it ends as its connections are closed.
    """
    with contacts([host for host, _ in selected]) as reached:
        return tried(reached, selected, work, leave=True)
