"""Opens the one connection to a host, whichever way the inventory says; heavy imports only for the way that is taken."""

from __future__ import annotations

from typing import assert_never

from specctl.adapters.transport import Transport
from specctl.fleet.types import Host, Via


def open_transport(host: Host) -> Transport:
    """Return an open connection to the host; raise ConnectError, with what to do about it, where there is none."""
    match host.via:
        case Via.SSH:
            from specctl.adapters import ssh

            return ssh.dial(host)
        case Via.LOCAL:
            from specctl.adapters.local import LocalTransport

            return LocalTransport(host)
        case _:
            assert_never(host.via)
