"""Where the agent lives on a host, and which interpreters there could run it: looks, and changes nothing."""

from __future__ import annotations

import glob
import json
import os
import stat
from typing import Dict, List, Mapping, Optional, Sequence

from specctl.host import commands, files, hello
from specctl.host.wire import Call

PREFIX = "/opt/specctl"
CURRENT = "current"
UNIT = "specctl-agent.service"
CONFIG = "/etc/specctl/agent.json"
NOTE = "version.json"
LEAST = (3, 11)
PATTERNS = (
    "/usr/bin/python3",
    "/usr/local/bin/python3",
    "/usr/bin/python3.[0-9][0-9]",
    "/usr/local/bin/python3.[0-9][0-9]",
)
PROBE_S = 10.0
PROBE = (
    "import json, platform, sys; print(json.dumps({'version': list(sys.version_info[:3]), 'machine': platform.machine(), "
    "'libc': list(platform.libc_ver()), 'implementation': sys.implementation.name, 'prefix': sys.prefix, "
    "'base': sys.base_prefix, 'path': sys.executable}))"
)
PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "MainPID", "NRestarts", "Result", "StatusText", "InvocationID", "MemoryCurrent",
    "CPUUsageNSec", "UnitFileState",
)  # fmt: skip

_ROUTINE = ("Starting ", "Started ", "Stopping ", "Stopped ", "Failed to start ", "Failed to listen ")
_ROUTINE_OF_UNIT = (
    "Deactivated successfully", "Failed with result", "Main process exited", "Control process exited", "Consumed ",
    "Scheduled restart job", "Start request repeated too quickly", "Killing process", "Unit process",
)  # fmt: skip


def base_of(python: str) -> str:
    """Return the interpreter behind a virtual environment's, or the same where it belongs to none."""
    place = python
    for _ in range(40):  # as many links as the kernel follows
        if os.path.exists(os.path.join(os.path.dirname(os.path.dirname(place)), "pyvenv.cfg")) and os.path.islink(
            place
        ):
            place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
            continue
        return os.path.realpath(place)
    return os.path.realpath(place)


def closed_at(path: str) -> Optional[str]:
    """Return the first folder on the way to a file that an ordinary user may not pass, or None."""
    place = os.path.dirname(os.path.realpath(path))
    folders: List[str] = []
    while place != "/":
        folders.append(place)
        place = os.path.dirname(place)
    for folder in reversed(folders):
        if not os.stat(folder).st_mode & stat.S_IXOTH:
            return folder
    return None


def _probed(path: str) -> Dict[str, object]:
    """Say what an interpreter is, or why it cannot run the agent; a virtual environment is none for us."""
    done = commands.run([path, "-I", "-S", "-c", PROBE], PROBE_S)
    try:
        found = json.loads(done.stdout) if done.status == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return {"path": path, "why": f"it does not run ({done.last_word()})"}
    why = None
    closed = closed_at(path)
    if tuple(found["version"]) < LEAST:
        why = f"it is older than {LEAST[0]}.{LEAST[1]}"
    elif found["implementation"] != "cpython":
        why = f"it is {found['implementation']}, not CPython"
    elif closed is not None:
        why = f"{closed} is closed to ordinary users, and the agent is one"
    return {**found, "path": path, "why": why}


def interpreters(engines: Sequence[str]) -> List[Dict[str, object]]:
    """Return the host's interpreters, the system's first, then those behind the engines' environments, each once."""
    wanted = [path for pattern in PATTERNS for path in sorted(glob.glob(pattern))]
    wanted += [base_of(python) for python in engines if os.path.exists(python)]
    found: Dict[str, Dict[str, object]] = {}
    for path in wanted:
        real = os.path.realpath(path)
        if real not in found and os.access(path, os.X_OK):
            found[real] = _probed(path)
    return list(found.values())


def installed(prefix: str) -> Optional[Mapping[str, object]]:
    """Return what `current` names: its version, interpreter and wheels; None where there is no agent."""
    return files.read_object(os.path.join(prefix, CURRENT, NOTE))


def unit_state() -> Dict[str, str]:
    """Return what systemd says of the agent's unit; empty where systemd does not run."""
    if hello.systemd_version() is None:
        return {}
    done = commands.run(["systemctl", "show", UNIT, "--property", ",".join(PROPERTIES)], PROBE_S)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return dict(line.partition("=")[::2] for line in lines)


def why_not_up(unit: str, log: str) -> Optional[str]:
    """Return the last line of a unit's log that gives a reason, its own or systemd's; None where no line does.

    Around it systemd says what it does with every unit, and that this one failed: no reason. What came before it was stopped last
    is of another start. Where nobody gives one, how its process ended has to do.
    """
    routine = (*_ROUTINE, *(f"{unit}: {words}" for words in _ROUTINE_OF_UNIT))
    told = [line.strip() for line in log.splitlines()]
    stops = [place for place, line in enumerate(told) if line.startswith("Stopped ")]
    told = told[stops[-1] + 1 :] if stops else told
    reasons = [line for line in told if line and not line.startswith(routine)]
    ends = [line[len(unit) + 2 :] for line in told if line.startswith(f"{unit}: Main process exited")]
    found = reasons or ends
    return found[-1] if found else None


def taken_off(journal: bytes) -> List[str]:
    """Return the servers that by the agent's journal of intents get no requests: taken off by somebody, and not let in again."""
    servers: Dict[str, str] = {}
    off: Dict[str, str] = {}
    for line in journal.split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(row, dict):
            continue
        intent, step, facts = str(row.get("id")), row.get("step"), row.get("facts")
        if step == "begun":
            servers[intent] = str(row.get("server"))
        elif step == "taken off" and isinstance(facts, dict) and facts.get("by") != "nobody":
            off[intent] = servers.get(intent, "a server")
        elif step in ("back", "ended"):
            off.pop(intent, None)
    return sorted(set(off.values()))


def look(call: Call) -> Mapping[str, object]:
    """Return interpreters (where asked for), the installed agent, its unit's state, and what the host offers it."""
    args = call.args
    prefix = args.path("prefix")
    found: Dict[str, object] = {
        "installed": installed(prefix),
        "config": files.read_object(CONFIG),
        "unit": unit_state(),
        "systemd": hello.systemd_version(),
        "root": os.geteuid() == 0,
        "versions": sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(prefix, "*", NOTE))
                           if not os.path.islink(os.path.dirname(path))),
    }  # fmt: skip
    if args.flag("interpreters"):
        found["interpreters"] = interpreters(args.texts("engines"))
    return found
