"""Choose the service manager that an op's `manager` argument names; both drive one server by the same functions."""

from __future__ import annotations

from typing import Union

from specctl.host import supervisor, systemd
from specctl.host.wire import UNSUPPORTED, Args, OpError

Service = Union[systemd.Systemd, supervisor.Supervisor]


def of(args: Args) -> Service:
    """Return the service of an op's arguments."""
    chosen = args.part("manager")
    kind = chosen.text("kind")
    if kind == systemd.Systemd.kind:
        return systemd.Systemd(chosen)
    if kind == supervisor.Supervisor.kind:
        return supervisor.Supervisor(chosen)
    raise OpError(UNSUPPORTED, f"no service manager named {kind}", hint="manager: systemd, or manager: supervisor")
