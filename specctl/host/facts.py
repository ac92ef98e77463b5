"""The facts of a host and of the servers on it, in one round trip; whatever cannot be found out is null and fails nothing else."""

from __future__ import annotations

import os
import time
from typing import Callable, Dict, List, Mapping

from specctl.host import clock, gpus, links, machine, models, packages, pci, probe, standing
from specctl.host.together import answers, or_none
from specctl.host.wire import Args, Call

# Sooner than the operator gives the whole call up, so that what was found by then arrives.
DEADLINE_S = 20.0
PROBES = ".probes"
SYSTEMD_UNITS = "unit_dir"


def _packages(args: Args, found: Dict[str, object]) -> None:
    python = args.text_or_none("python")
    versions = packages.versions(python, args.texts("packages")) if python else {}
    found["packages"] = {name: package.version for name, package in versions.items() if package}
    found["package_digests"] = {name: package.digest for name, package in versions.items() if package}
    if python and os.path.isabs(python):
        runs = os.path.isfile(python) and os.access(python, os.X_OK)
        found["python"] = {"path": python, "there": os.path.exists(python), "runs": runs}


def _model(args: Args, which: str, found: Dict[str, object], warnings: List[str]) -> None:
    path = args.text_or_none(which)
    about = models.describe(path) if path and os.path.isabs(path) else None
    found[which] = about
    found[f"{which}_bytes"] = about.get("size_bytes") if about else None
    if about and about.get("missing_count"):
        warnings.append(f"{path}: {about['missing_count']} of the files that its index names are missing")


def of_server(args: Args, found: Dict[str, object]) -> None:
    """Fill in the facts of one server, as far as they can be found out."""
    standing.of_server(args, found)
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    folder = args.path("dir")
    found["capability"] = or_none(lambda: probe.known(os.path.join(os.path.dirname(folder), PROBES)), warnings)
    or_none(lambda: _packages(args, found), warnings)
    for which in ("target", "draft"):
        or_none(lambda name=which: _model(args, name, found, warnings), warnings)  # type: ignore[misc]  # bound for each turn


def _places(rows: List[Args]) -> List[str]:
    """Return the paths whose disks matter: the servers' folders, the unit folder, the models."""
    found = [row.path("dir") for row in rows]
    found += [unit for row in rows for unit in [row.part("manager").text_or_none(SYSTEMD_UNITS)] if unit]
    folders = [row.text_or_none(which) for row in rows for which in ("target", "draft")]
    return list(dict.fromkeys([*found, *(path for path in folders if path and os.path.isabs(path))]))


def _disks(rows: List[Args]) -> Dict[str, object]:
    homes = [machine.disk(row.path("dir"))["free_bytes"] for row in rows]
    free = [size for size in homes if isinstance(size, int)]
    return {"disks": [machine.disk(path) for path in _places(rows)], "disk_free_bytes": min(free) if free else None}


def _memory() -> Dict[str, object]:
    found = machine.memory()
    return {
        "memory_bytes": found.get("MemTotal"),
        "memory_free_bytes": found.get("MemAvailable"),
        "hugepages": machine.hugepages(found),
    }


def _gpus() -> Dict[str, object]:
    found = gpus.look()
    return {"gpus": found.gpus, "driver_version": found.driver, "gpu_problem": found.problem}


def _asks(rows: List[Args]) -> Dict[str, Callable[[], object]]:
    """Return the questions about the host: those that answer with an object of several facts, and those with one."""
    return {
        **SEVERAL,
        "disks_": lambda: _disks(rows),
        "cpu_count": os.cpu_count,
        "cpu_model": machine.cpu_model,
        "limits": machine.limits,
        "infiniband": machine.adapters,
        "time_synchronised": machine.synchronised,
        "gpu_processes": gpus.applications,
        "cuda_version": gpus.cuda_version,
        "topology": links.topology,
        "nvswitches": links.switches,
        "fabric": gpus.fabric,
        "fabric_manager": links.manager,
        "iommu": pci.iommu,
        "acs": pci.acs,
    }


SEVERAL: Mapping[str, Callable[[], Mapping[str, object]]] = {
    "gpus_": _gpus,
    "memory_": _memory,
    "versions_": machine.versions,
}


def _flat(found: Mapping[str, object]) -> Dict[str, object]:
    """Lay the answers of several facts beside those of one; their names end in an underscore."""
    flat: Dict[str, object] = {}
    for name, value in found.items():
        if not name.endswith("_"):
            flat[name] = value
        elif isinstance(value, dict):
            flat.update(value)
    return flat


def facts(call: Call) -> Mapping[str, object]:
    """Return the facts of the host and of each server asked for; what is not found within the time is missing, with a warning.

    `brief` leaves the host's own facts out, which takes no question to a GPU driver.
    """
    rows = call.args.parts("servers")
    servers: List[Dict[str, object]] = [{} for _ in rows]
    warnings: List[str] = []
    asks = {} if call.args.flag("brief") else _asks(rows)
    for number, (row, found) in enumerate(zip(rows, servers)):
        asks[f"server {number + 1}_"] = lambda row=row, found=found: of_server(row, found)  # type: ignore[misc]  # bound for each
    host = answers(asks, time.monotonic() + call.args.number("timeout_s", DEADLINE_S), warnings)
    return {
        **_flat(host),
        "at_s": clock.boottime_s(),
        "wall_s": clock.wall_s(),
        "warnings": list(warnings),
        "servers": [dict(found) for found in servers],
    }
