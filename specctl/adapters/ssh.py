"""The SSH transport, by Fabric, and the only module that imports it; connect.py opens it.

It never relaxes: every hop's host key must be in known_hosts, passwords and passphrases are never asked for, and no Fabric or
Invoke configuration file is read.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence

import fabric

from specctl.adapters import known_hosts, ssh_dial, ssh_link, ssh_refusals
from specctl.adapters.exchange import finish
from specctl.adapters.quoting import command_line
from specctl.adapters.relay import relay
from specctl.adapters.ssh_refusals import Leg
from specctl.adapters.ssh_resolve import resolve_route
from specctl.adapters.sudo import PROBE, SUDO_LIMIT_S, SudoGate, as_root, sudo_refusal
from specctl.adapters.transport import Stream
from specctl.errors import ConnectError
from specctl.fleet.types import Host

CONNECT_LIMIT_S = 10.0
HANDSHAKE_LIMIT_S = 30.0
# How often the far end must prove itself alive where the operator's ServerAliveInterval says nothing.
ALIVE_INTERVAL_S = 15.0


class SshTransport:
    """A Transport over SSH; `dial` makes one. Closing it closes every hop behind it."""

    def __init__(self, host: Host, link: ssh_link.Link, *, user: str, resources: contextlib.ExitStack) -> None:
        self._host = host
        self._link = link
        self._user = user
        self._resources = resources
        self._sudo = SudoGate(self._probe_sudo)

    @property
    def host(self) -> str:
        """The inventory's name of the host."""
        return self._host.name

    def open(self, argv: Sequence[str], *, pty: bool = False) -> Stream:
        """Start a program on the host, as root where the inventory says sudo."""
        if self._host.sudo:
            self._sudo.require()
            argv = as_root(argv)
        return ssh_link.open_program(self._link, command_line(argv), host=self.host, pty=pty)

    def connect(self, address: str, port: int, *, timeout_s: float) -> socket.socket:
        """Return a socket to an address as the host sees it; ConnectionRefusedError and TimeoutError as usual."""
        try:
            channel = ssh_link.open_forwarding(self._link, address, port, host=self.host, limit_s=timeout_s)
        except PermissionError as error:
            raise ssh_refusals.no_forwarding(self.host, address, port) from error
        return relay(channel, name=f"{self.host}-{port}", faults=ssh_link.LINK_ERRORS)

    def close(self) -> None:
        """Hang up on the host and on every hop before it; idempotent."""
        self._resources.close()

    def _probe_sudo(self) -> ConnectError | None:
        stream = ssh_link.open_program(self._link, command_line(PROBE), host=self.host, pty=False)
        return sudo_refusal(finish(stream, host=self.host, timeout_s=SUDO_LIMIT_S), host=self.host, user=self._user)


def dial(host: Host) -> SshTransport:
    """Connect to a host through all its jumps, each verified and authenticated; raise ConnectError that tells what to do."""
    route = resolve_route(host)
    with contextlib.ExitStack() as resources:
        link: ssh_link.Link | None = None
        for number, settings in enumerate(route):
            via = route[number - 1] if number else None
            leg = Leg(host=host.name, settings=settings, via=via, is_target=number == len(route) - 1)
            link = _join(leg, link, resources)
        assert link is not None  # a route ends with the host itself
        return SshTransport(host, link, user=route[-1].user, resources=resources.pop_all())


def _join(leg: Leg, before: ssh_link.Link | None, resources: contextlib.ExitStack) -> ssh_link.Link:
    """Make one hop: door, greeting, host key, authentication."""
    limit_s = leg.settings.connect_timeout_s or CONNECT_LIMIT_S
    proxy = None
    if before is not None:
        sock = _through(before, leg, limit_s=limit_s)
    elif leg.settings.proxy_command is not None:
        proxy = ssh_dial.start_proxy(leg, leg.settings.proxy_command)
        resources.callback(proxy.close)
        sock = proxy.sock
    else:
        sock = ssh_dial.dial_tcp(leg, limit_s=limit_s)
    resources.callback(sock.close)
    ssh_dial.await_greeting(leg, sock, limit_s=limit_s, proxy=proxy)
    link = _handshake(leg, sock, resources)
    interval_s = leg.settings.alive_interval_s or ALIVE_INTERVAL_S
    heartbeat = ssh_link.Heartbeat(link, interval_s=interval_s, limit_s=interval_s * leg.settings.alive_count)
    heartbeat.start()
    resources.callback(heartbeat.close)
    resources.callback(_hang_up, sock)
    return link


def _hang_up(sock: socket.socket) -> None:
    """Wake the link's reader, which looks whether it is to stop only every tenth of a second."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _through(before: ssh_link.Link, leg: Leg, *, limit_s: float) -> socket.socket:
    settings = leg.settings
    try:
        channel = ssh_link.open_forwarding(before, settings.hostname, settings.port, host=leg.host, limit_s=limit_s)
    except PermissionError as error:
        raise ssh_refusals.jump_forbidden(leg) from error
    except ConnectionRefusedError as error:
        raise ssh_refusals.jump_refused(leg, error.strerror or "refused") from error
    except TimeoutError as error:
        raise ssh_refusals.jump_refused(leg, f"no answer in {limit_s:g} s") from error
    return relay(channel, name=settings.alias, faults=ssh_link.LINK_ERRORS)


def _handshake(leg: Leg, sock: socket.socket, resources: contextlib.ExitStack) -> ssh_link.Link:
    settings = leg.settings
    try:
        entries = known_hosts.read_known_hosts((*settings.user_known_hosts_files, *settings.global_known_hosts_files))
    except OSError as error:
        raise ssh_refusals.known_hosts_unreadable(leg, error) from error
    connection = fabric.Connection(
        host=settings.hostname,
        user=settings.user,
        port=settings.port,
        config=fabric.Config(lazy=True),
        forward_agent=False,
        connect_timeout=HANDSHAKE_LIMIT_S,
        connect_kwargs={
            "sock": sock,
            "transport_factory": ssh_link.link_factory(entries, settings.known_names),
            "auth_strategy": ssh_link.Keys(leg),
            "banner_timeout": HANDSHAKE_LIMIT_S,
            "auth_timeout": HANDSHAKE_LIMIT_S,
        },
    )
    resources.callback(connection.client.close)
    connection.client.set_missing_host_key_policy(ssh_link.Verifier(leg, entries))
    try:
        connection.open()
    except ssh_link.LINK_ERRORS as error:
        raise ssh_refusals.not_ssh(leg, str(error) or type(error).__name__) from error
    link = connection.transport
    assert isinstance(link, ssh_link.Link)
    return link
