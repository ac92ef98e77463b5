"""Choose the service manager that an op's `manager` argument names; both drive one server by the same functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from specctl.host.wire import UNSUPPORTED, Args, OpError

if TYPE_CHECKING:
    from specctl.host.supervisor import Supervisor
    from specctl.host.systemd import Systemd

    Service = Union[Systemd, Supervisor]

SYSTEMD = "systemd"
SUPERVISOR = "supervisor"


def of(args: Args) -> Service:
    """Return the service of an op's arguments; only its own manager's module is imported."""
    chosen = args.part("manager")
    kind = chosen.text("kind")
    if kind == SYSTEMD:
        from specctl.host.systemd import Systemd

        return Systemd(chosen)
    if kind == SUPERVISOR:
        from specctl.host.supervisor import Supervisor

        return Supervisor(chosen)
    raise OpError(
        UNSUPPORTED, f"no service manager named {kind}", hint="service_manager: systemd, or service_manager: supervisor"
    )
