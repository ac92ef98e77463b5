"""How one server stands on this host: release, records, lease, guard, unit, port, drift; common to a look and the facts."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional

from specctl.host import activate, files, lease, ports, records, releases, services
from specctl.host.states import State
from specctl.host.together import or_none
from specctl.host.wire import Args

RECORDS = 20
LIVE_RECORDS = 5


def of_server(args: Args, found: Dict[str, object]) -> None:
    """Fill in how a server stands, as far as it can be found out; what cannot is null, with a warning."""
    warnings: List[str] = []
    found.update({"name": args.text("name"), "warnings": warnings, "unit": None, "port": None, "port_owner": None})
    folder = args.path("dir")
    found["current"] = or_none(lambda: _current(folder), warnings)
    # Whoever cannot read it must not take it for nothing: a user without the rights, a disk that fails.
    found["unreadable"] = warnings[-1] if warnings else None
    found["previous"] = or_none(lambda: _previous(folder), warnings)
    found["releases"] = or_none(lambda: releases.ids(folder), warnings)
    held = or_none(lambda: lease.status(folder), warnings)
    found["lease"] = held.as_wire() if held else None
    found["guard"] = or_none(lambda: _guard(folder), warnings)
    found["records"] = or_none(lambda: records.latest(folder, RECORDS, LIVE_RECORDS), warnings)
    _of_service(args, folder, found, warnings)


def _current(folder: str) -> Optional[Dict[str, object]]:
    named = releases.pointed(folder)
    if named is None:
        return None
    return {
        "id": named.id,
        "algo": named.algo,
        "manifest": releases.manifest(folder, named.id) or {},
        "text": files.read_text(os.path.join(releases.place(folder, named.id), named.file)),
    }


def _guard(folder: str) -> Optional[Dict[str, object]]:
    """Return the guard that is armed; its modules are a third of a look's, and are imported where there is one."""
    if not os.path.exists(os.path.join(folder, "guard")):
        return None
    from specctl.host import guard

    return guard.facts(folder)


def _previous(folder: str) -> Optional[Dict[str, object]]:
    named = releases.pointed(folder, releases.PREVIOUS)
    return None if named is None else {"id": named.id, "algo": named.algo}


def _of_service(args: Args, folder: str, found: Dict[str, object], warnings: List[str]) -> None:
    """Fill in what the service manager knows."""
    found["drift"] = None
    service = or_none(lambda: services.of(args), warnings)
    if service is None:
        return
    state = or_none(service.state, warnings)
    if state is None:
        return
    found["unit"] = {**state.as_wire(), **service.details(state)}
    found["own_pids"] = or_none(lambda: service.pids(state), warnings)
    found.update(or_none(lambda: _port(args, service, state), warnings) or {})
    drifted = or_none(lambda: activate.drift(folder, service, state), warnings)
    found["drift"] = None if drifted is None else bool(drifted)
    found["drifted"] = drifted
    warnings.extend(drifted or [])


def _port(args: Args, service: services.Service, state: State) -> Mapping[str, object]:
    port = args.whole_or_none("port")
    owner = ports.owner(port, service.pids(state)) if port is not None else ports.Owner(None)
    return {"port": owner.port, "port_owner": owner.words()}
