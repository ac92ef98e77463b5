"""Prepare an act on one server: facts, capability, rendered release, plan; nothing on the host is changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from specctl.adapters.redaction import Redactor
from specctl.adapters.secrets import resolve_secret
from specctl.adapters.templates import Templates
from specctl.engines.types import AlgoProfile
from specctl.errors import UnsupportedError
from specctl.fleet.types import Server
from specctl.ops import render
from specctl.ops.contact import Contact, manager
from specctl.rollout import launch as launches
from specctl.rollout import unit
from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.observation import Port
from specctl.rollout.plan import Plan, of_release
from specctl.rollout.release import Release

FACTS_TIMEOUT_S = 30.0
PROBE_TIMEOUT_S = 120.0
PROBES = ".probes"  # beside the servers' folders; host/facts.py looks there too


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """All that is needed to carry a plan out; `release` None: the files are on the host already."""

    contact: Contact
    server: Server
    facts: ServerFacts
    host_facts: HostFacts
    plan: Plan
    release: Release | None = None


def secrets_of(server: Server) -> Mapping[str, str]:
    """Read the secrets that a server refers to; raises UsageError for one that is missing."""
    return {name: resolve_secret(ref).reveal() for name, ref in server.secrets.items()}


def gather(contact: Contact, servers: tuple[Server, ...]) -> HostFacts:
    """Ask a host for its cheap facts and those of the servers named, in one round trip."""
    rows = [
        {
            "name": server.name,
            "dir": str(unit.server_dir(contact.host, server.name)),
            "manager": manager(contact.host, server),
            "port": server.port,
            "python": server.python,
            "packages": list(server.profile.packages),
            "target": server.target.path,
            "draft": server.draft.path if server.draft else None,
        }
        for server in servers
    ]
    answer = contact.session.call("facts", {"servers": rows}, timeout_s=FACTS_TIMEOUT_S)
    return HostFacts.from_wire(contact.host.name, answer)


def _probe_digest(server: Server, facts: ServerFacts, code: str, names: list[str]) -> str:
    """Name what the capability probe's answer depends on: interpreter, packages, environment, the probe and what it asks."""
    packages = dict(sorted((facts.package_digests or facts.packages).items()))
    parts = [server.python, packages, dict(sorted(server.env.items())), code, names]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def capability(contact: Contact, server: Server, facts: ServerFacts, profile: AlgoProfile) -> None:
    """Ask the engine's own interpreter whether it knows the algo; raise UnsupportedError when it does not or cannot say.

    Nothing is asked for an algo to which the profile gives no name. The answer is cached on the host by package digest.
    """
    name = server.profile.capability.get(profile.algo)
    if name is None:
        return
    code = launches.engines()[server.profile.engine].probe
    names = sorted(set(server.profile.capability.values()))
    args = {
        "python": server.python,
        "code": code,
        "args": names,
        "env": dict(server.env),
        "digest": _probe_digest(server, facts, code, names),
        "cache_dir": str(contact.host.state_dir / PROBES),
        "timeout_s": PROBE_TIMEOUT_S,
    }
    answer = contact.session.call("probe", args, timeout_s=PROBE_TIMEOUT_S + 10.0)
    said = _parsed(answer.get("stdout"))
    knows = said.get("knows")
    verdict = knows.get(name) if isinstance(knows, Mapping) else None
    if verdict is True:
        return
    where = contact.host.name
    if verdict is False:
        raise UnsupportedError(
            f"the engine at {server.python} ({said.get('version') or 'version unknown'}) does not know {name}",
            hint=f"use an engine build that has {profile.algo}, and the engine profile that names it",
            host=where,
        )
    why = said.get("error") or answer.get("stderr") or f"exit status {answer.get('status')}"
    raise UnsupportedError(
        f"the engine at {server.python} could not be asked whether it knows {name}: {str(why).strip()[-300:]}",
        hint=f"specctl exec --host {where} -- {server.python} -m {server.profile.module[0]} --help",
        host=where,
    )


def _parsed(stdout: object) -> Mapping[str, object]:
    lines = stdout.strip().splitlines() if isinstance(stdout, str) else []
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def read_release(contact: Contact, server: Server, release: str) -> tuple[Mapping[str, object], Mapping[str, str]]:
    """Return a release's manifest and the text of its files, secret ones left out; raises when there is no such release."""
    answer = contact.call("release.read", server, {"id": release})
    manifest, files = answer.get("manifest"), answer.get("files")
    texts = {str(name): str(text) for name, text in files.items()} if isinstance(files, Mapping) else {}
    return (manifest if isinstance(manifest, Mapping) else {}), texts


def port_free(contact: Contact, server: Server, facts: ServerFacts) -> None:
    """Refuse a port that somebody else holds: the engine binds it last and would notice only after the whole load."""
    if facts.port is not Port.FOREIGN:
        return
    raise UnsupportedError(
        f"port {server.port} is held by {facts.port_owner or 'another process'}",
        hint=f"end it, or give server {server.name} another port",
        host=contact.host.name,
    )


def prepare(contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
    """Find out what a deploy of the algo would change; raises SpecctlError when it could not work."""
    profile = launches.algo_profile(server, algo)
    launches.build(contact.host, server, algo)
    values = secrets_of(server)
    contact.redactor = Redactor(tuple(values.values()))
    host_facts = gather(contact, (server,))
    facts = host_facts.servers[server.name]
    port_free(contact, server, facts)
    capability(contact, server, facts, profile)
    compared_id = facts.current.id if facts.current else "1"
    release = render.release(templates, contact.host, server, release_id=compared_id, secrets=values)
    plan = of_release(release, algo, facts, host=contact.host.name, force=force)
    if plan.release != compared_id:
        release = render.release(templates, contact.host, server, release_id=plan.release, secrets=values)
    return Prepared(contact=contact, server=server, facts=facts, host_facts=host_facts, plan=plan, release=release)
