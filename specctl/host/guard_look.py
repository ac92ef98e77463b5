"""Look at the host as the guard sees it: whose lease is alive, what runs, whether it is ready; changes nothing."""

from __future__ import annotations

import os

from specctl.host import activate, clock, files, lease, ports, releases, services
from specctl.host.guard_rules import GUARD, NOBODY, OPERATOR, OTHER, Look
from specctl.host.guard_state import GuardState
from specctl.host.ready import READY, Prober, reach
from specctl.host.states import State
from specctl.host.wire import Args, OpError


def holder(folder: str, state: GuardState) -> str:
    """Say whose lease on the server is alive."""
    held = lease.status(folder)
    if held is None:
        return NOBODY
    if held.token == state.own:
        return GUARD
    return OPERATOR if held.token == state.token else OTHER


def _ready(folder: str, state: GuardState, service: services.Service, unit: State) -> bool:
    """Say whether the server's own processes hold the port and /ready answers 200."""
    port, bind = releases.address(folder, Args(state.target))
    if port is None or unit.main_pid is None:
        return False
    prober = Prober(reach(bind or ""), port, lambda: service.pids(unit), lambda: None)
    prober.look()
    return prober.owner.port == ports.OWN and prober.ready == READY


def runs_back(folder: str, state: GuardState, service: services.Service, unit: State) -> bool:
    """Say whether what runs, and what a boot would start, is the release to go back to."""
    named, back = releases.pointed(folder), state.back
    if named is None or back is None or unit.main_pid is None or (named.id, named.algo) != (back.id, back.algo):
        return False
    if service.installed() != files.read(os.path.join(releases.place(folder, named.id), named.file)):
        return False
    return unit.invocation == state.before or activate.older(folder, named, unit) is None


def look_at(folder: str, state: GuardState) -> Look:
    """Look at the host; while the operator is at work the server is not asked (each question is a line in its log)."""
    whose = holder(folder, state)
    service = services.of(Args(state.target))
    try:
        unit = service.state()
    except OpError:
        unit = State()
    return Look(
        boot=clock.boot_id(),
        now_s=clock.boottime_s(),
        holder=whose,
        active=unit.active,
        sub=unit.sub,
        invocation=unit.invocation,
        restarts=unit.restarts,
        ready=whose != OPERATOR and _ready(folder, state, service, unit),
        runs_back=runs_back(folder, state, service, unit),
    )
