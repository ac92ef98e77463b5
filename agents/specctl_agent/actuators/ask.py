"""The agent's way to the engines of its own host: straight, without a connection."""

from __future__ import annotations

from dataclasses import dataclass

from specctl.adapters.local import LocalTransport
from specctl.adapters.transport import Transport
from specctl.fleet.types import Host


@dataclass(frozen=True, slots=True)
class Here:
    """The way to this very host."""

    transport: Transport

    @classmethod
    def on(cls, host: Host) -> Here:
        """Return the way to a host from itself."""
        return cls(LocalTransport(host))
