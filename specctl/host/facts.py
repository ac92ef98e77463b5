"""The facts of a host and of the servers on it, in one round trip; whatever cannot be found out is null and fails nothing else."""

from __future__ import annotations

import os
import threading
from typing import Callable, Dict, List, Mapping, Optional, TypeVar

from specctl.host import (
    activate,
    clock,
    files,
    gpus,
    guard,
    lease,
    packages,
    ports,
    probe,
    records,
    releases,
    services,
    weights,
)
from specctl.host.states import State
from specctl.host.wire import Args, Call, OpError

DEADLINE_S = 30.0
RECORDS = 20
PROBES = ".probes"

_T = TypeVar("_T")


def _or_none(ask: Callable[[], _T], warnings: List[str]) -> Optional[_T]:
    """Ask for one fact; a failure becomes a warning and None (this is the fallback that the op promises)."""
    try:
        return ask()
    except OpError as error:
        warnings.append(error.message)
    except (OSError, ValueError) as error:
        warnings.append(str(error))
    return None


def _memory(field: str) -> Optional[int]:
    for line in (files.read_text("/proc/meminfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key == field:
            return int(value.split()[0]) * 1024
    return None


def _disk_free(path: str) -> int:
    """Return the free bytes where a folder lies or would lie."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


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


def _packages(args: Args, found: Dict[str, object]) -> None:
    python = args.text_or_none("python")
    versions = packages.versions(python, args.texts("packages")) if python else {}
    found["packages"] = {name: package.version for name, package in versions.items() if package}
    found["package_digests"] = {name: package.digest for name, package in versions.items() if package}


def _weights(args: Args, which: str, found: Dict[str, object], warnings: List[str]) -> None:
    path = args.text_or_none(which)
    measured = weights.measure(path) if path and os.path.isabs(path) else None
    found[f"{which}_bytes"] = measured.size_bytes if measured else None
    if measured and measured.missing:
        warnings.append(f"{path}: {measured.missing} of the files that its index names are missing")


def _port(args: Args, service: services.Service, state: State) -> Dict[str, object]:
    port = args.whole_or_none("port")
    owner = ports.owner(port, service.pids(state)) if port is not None else ports.Owner(None)
    return {"port": owner.port, "port_owner": owner.words()}


def _previous(folder: str) -> Optional[Dict[str, object]]:
    named = releases.pointed(folder, releases.PREVIOUS)
    return None if named is None else {"id": named.id, "algo": named.algo}


def of_server(args: Args, found: Dict[str, object]) -> None:
    """Fill in the facts of one server, as far as they can be found out."""
    warnings: List[str] = []
    found.update({"name": args.text("name"), "warnings": warnings, "unit": None, "port": None, "port_owner": None})
    folder = args.path("dir")
    found["current"] = _or_none(lambda: _current(folder), warnings)
    found["previous"] = _or_none(lambda: _previous(folder), warnings)
    found["releases"] = _or_none(lambda: releases.ids(folder), warnings)
    held = _or_none(lambda: lease.status(folder), warnings)
    found["lease"] = held.as_wire() if held else None
    found["guard"] = _or_none(lambda: guard.facts(folder), warnings)
    found["records"] = _or_none(lambda: records.latest(folder, RECORDS), warnings)
    found["capability"] = _or_none(lambda: probe.known(os.path.join(os.path.dirname(folder), PROBES)), warnings)
    _or_none(lambda: _packages(args, found), warnings)
    for which in ("target", "draft"):
        _or_none(lambda name=which: _weights(args, name, found, warnings), warnings)  # type: ignore[misc]  # bound for each turn
    _of_service(args, folder, found, warnings)


def _of_service(args: Args, folder: str, found: Dict[str, object], warnings: List[str]) -> None:
    """Fill in what the service manager knows."""
    found["drift"] = None
    service = _or_none(lambda: services.of(args), warnings)
    if service is None:
        return
    state = _or_none(service.state, warnings)
    if state is None:
        return
    found["unit"] = {**state.as_wire(), **service.details(state)}
    found.update(_or_none(lambda: _port(args, service, state), warnings) or {})
    drifted = _or_none(lambda: activate.drift(folder, service, state), warnings)
    found["drift"] = None if drifted is None else bool(drifted)
    warnings.extend(drifted or [])


def _of_host(rows: List[Args], found: Dict[str, object], warnings: List[str]) -> None:
    found["cpu_count"] = os.cpu_count()
    found["memory_bytes"] = _or_none(lambda: _memory("MemTotal"), warnings)
    found["memory_free_bytes"] = _or_none(lambda: _memory("MemAvailable"), warnings)
    homes = [row.path("dir") for row in rows]
    found["disk_free_bytes"] = _or_none(lambda: min(_disk_free(home) for home in homes), warnings) if homes else None
    found["gpus"] = _or_none(gpus.listing, warnings)


def facts(call: Call) -> Mapping[str, object]:
    """Return the facts of the host and of each server asked for; what is not found within the time is missing, with a warning."""
    rows = call.args.parts("servers")
    host: Dict[str, object] = {}
    servers: List[Dict[str, object]] = [{} for _ in rows]
    warnings: List[str] = []
    works: List[Callable[[], None]] = [lambda: _of_host(rows, host, warnings)]
    works += [lambda row=row, found=found: of_server(row, found) for row, found in zip(rows, servers)]  # type: ignore[misc]  # bound for each
    threads = [threading.Thread(target=_guarded, args=(work, warnings), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(call.args.number("timeout_s", DEADLINE_S))
    if any(thread.is_alive() for thread in threads):
        warnings.append("some facts did not come in time")
    return {
        **host,
        "at_s": clock.boottime_s(),
        "warnings": list(warnings),
        "servers": [dict(found) for found in servers],
    }


def _guarded(work: Callable[[], None], warnings: List[str]) -> None:
    _or_none(work, warnings)
