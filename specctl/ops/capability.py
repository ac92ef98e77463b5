"""Ask an engine's own interpreter what it knows, away from every GPU; the host remembers the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from specctl.adapters import plugin_files
from specctl.engines._command import PLUGIN_MARK, SEARCH_PATH
from specctl.engines.types import EngineProfile
from specctl.errors import ConnectError, SpecctlError
from specctl.fleet.types import Server
from specctl.ops.contact import Contact
from specctl.rollout import launch as launches
from specctl.rollout import reading
from specctl.rollout.facts import ServerFacts
from specctl.rollout.launch import Launch
from specctl.rollout.preflight.subject import Capability
from specctl.rollout.unit import server_dir

TIMEOUT_S = 120.0
PROBES = ".probes"  # beside the servers' folders; host/facts.py looks there too
# What specctl itself adds to a launch's environment, and what the probe must not see.
OWN_VARIABLES = frozenset(("PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME"))


def environment(env: Mapping[str, str], profile: EngineProfile) -> Mapping[str, str]:
    """Return the part of a launch's environment that is the same for every algo, so that one answer serves them all."""
    left_out = set(OWN_VARIABLES)
    for algo in profile.algos.values():
        left_out |= {*algo.env, *algo.knob_env.values(), *algo.knob_limits.values(), *algo.knob_steps.values()}
    return {name: value for name, value in sorted(env.items()) if name not in left_out}


def _findable(launch: Launch, folder: str) -> Mapping[str, str]:
    """Return the environment in which the host finds the plugin: by the release there, else put before the search path by it."""
    if launch.release is not None or not launch.plugs:
        return launch.environment(folder)
    rest = [part for part in launch.env[SEARCH_PATH].split(":") if part != PLUGIN_MARK]
    return {**launch.env, SEARCH_PATH: ":".join(rest)}


def _digest(
    python: str, env: Mapping[str, str], facts: ServerFacts, code: str, names: list[str], plugin: Mapping[str, str]
) -> str:
    """Name what the answer depends on: interpreter, packages, environment, the plugin, the probe and what it asks."""
    packages = dict(sorted((facts.package_digests or facts.packages).items()))
    parts = [python, packages, dict(env), code, names, *([dict(plugin)] if plugin else [])]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _found(server: Server, facts: ServerFacts) -> bool:
    """Claim that the engine's package was found without asking its interpreter."""
    names = server.profile.packages
    return not names or names[0] in facts.packages


def ask(contact: Contact, server: Server, facts: ServerFacts, launch: Launch, *, python: str) -> Capability | None:
    """Return what the engine says of the algo; None where the profile gives it no name and the engine was found without asking.

    A plugin that the release would hold goes with the question: nothing of the release is on the host yet. Raises ConnectError
    alone: an interpreter that gives no answer is an answer of its own.
    """
    name = server.profile.capability.get(launch.algo)
    if name is None and _found(server, facts):
        return None
    if facts.python_runs is False:
        return Capability(name=name, silent=f"there is no interpreter {python}")
    code = launches.engines()[server.profile.engine].probe
    folder = str(server_dir(contact.host, server.name) / "releases" / (launch.release or ""))
    names, shared = (
        sorted(set(server.profile.capability.values())),
        environment(_findable(launch, folder), server.profile),
    )
    carried = plugin_files.of(server.profile.plugin) if launch.plugs and launch.release is None else ()
    args = {
        "python": python,
        "code": code,
        "args": names,
        "env": dict(shared),
        "plugin": [{"name": file.name, "content": file.content} for file in carried],
        "digest": _digest(python, shared, facts, code, names, {file.name: file.digest() for file in carried}),
        "cache_dir": str(contact.host.state_dir / PROBES),
        "timeout_s": TIMEOUT_S,
    }
    try:
        answer = contact.session.call("probe", args, timeout_s=TIMEOUT_S + 10.0)
    except ConnectError:
        raise
    except SpecctlError as error:
        return Capability(name=name, silent=error.message)
    return _read(answer, name)


def _read(answer: Mapping[str, object], name: str | None) -> Capability:
    """Read what the probe printed; what printed nothing failed before it could say why."""
    said = _parsed(answer.get("stdout"))
    knows = reading.mapping(said.get("knows")).get(name) if name is not None else None
    error = reading.text(said.get("error"))
    if not said:
        words = reading.text(answer.get("stderr")) or f"exit status {answer.get('status')}"
        error = " ".join(words.split())[-300:]
    return Capability(name=name, knows=reading.claim(knows), version=reading.text(said.get("version")), error=error)


def _parsed(stdout: object) -> Mapping[str, object]:
    lines = stdout.strip().splitlines() if isinstance(stdout, str) else []
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return reading.mapping(found)
