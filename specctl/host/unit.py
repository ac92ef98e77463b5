"""Ops on a server's unit: state, start, reset, removal; stopping takes more (stopping.py)."""

from __future__ import annotations

import os
import shutil
from typing import Dict, List, Mapping

from specctl.host import agent_note, clock, files, lease, ports, releases, services
from specctl.host.wire import REMOTE_COMMAND, Call, OpError

START_S = 60.0
PURGED = (releases.RELEASES,)
LINKS = (releases.CURRENT, releases.PREVIOUS, "activated.json")


def state(call: Call) -> Mapping[str, object]:
    """Return the unit's state, its processes and, where a port is given, who listens on it."""
    service = services.of(call.args)
    found = service.state()
    pids = service.pids(found)
    port = call.args.whole_or_none("port")
    owner = ports.owner(port, pids) if port is not None else ports.Owner(None)
    return {
        "unit": found.as_wire(),
        **service.details(found),
        "pids": pids,
        "port": owner.port,
        "port_owner": owner.words(),
    }


def start(call: Call) -> Mapping[str, object]:
    """Start the unit; returns as soon as the service manager has started its main process."""
    service = services.of(call.args)
    at_s = clock.boottime_s()
    found = service.start(call.args.number("timeout_s", START_S))
    return {"at_s": at_s, "unit": found.as_wire(), **service.details(found)}


def reset_failed(call: Call) -> Mapping[str, object]:
    """Make the service manager forget a failure."""
    service = services.of(call.args)
    service.reset_failed()
    return {"unit": service.state().as_wire()}


def disable(call: Call) -> Mapping[str, object]:
    """Keep a boot from starting a server without a healthy release; all else stays, and the next activation enables it."""
    args = call.args
    with lease.fenced(args.path("dir"), args.whole("token", 0)):
        removed = services.of(args).disable()
    result: Dict[str, object] = {"removed": removed}
    return result


def disable_remove(call: Call) -> Mapping[str, object]:
    """Take a stopped server off the host: unit, links, note; with `purge` its releases too. Records stay."""
    args = call.args
    folder = args.path("dir")
    service = services.of(args)
    now = service.state()
    if not now.at_rest:
        raise OpError(REMOTE_COMMAND, f"the server is {now.active}, not stopped", hint="specctl stop --host H first")
    removed: List[str] = []
    with lease.fenced(folder, args.whole("token", 0)):
        removed += [name for name in LINKS if files.remove(os.path.join(folder, name))]
        files.sync_dir(folder)
    removed += service.uninstall()
    removed += agent_note.forget(folder)
    if args.flag("purge"):
        for name in PURGED:
            place = os.path.join(folder, name)
            if os.path.isdir(place):
                shutil.rmtree(place)
                removed.append(name)
    result: Dict[str, object] = {"removed": removed}
    return result
