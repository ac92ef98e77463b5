"""Reach the server that is to be calibrated: it must serve and be nobody's now; and say what its figures hold for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from specctl.control.calibration_facts import Facts
from specctl.control.mode import Mode
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo
from specctl.errors import LockHeldError, SpecctlError, UnhealthyError, UnsupportedError, UsageError
from specctl.fleet.types import Host, Server
from specctl.ops.contact import Contact, contacts
from specctl.ops.engine_http import EngineClient
from specctl.ops.load_counters import info
from specctl.ops.stored import reach
from specctl.rollout.facts import HostFacts, ServerFacts, as_deployed, stored_knobs, stored_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A server that was reached and serves."""

    contact: Contact
    inventory: Server
    server: Server
    host_facts: HostFacts
    facts: ServerFacts
    client: EngineClient
    told: EngineInfo
    was: Mode


@contextmanager
def reached(pair: tuple[Host, Server], *, steal: bool = False) -> Iterator[Site]:
    """Yield a server that serves and that nobody acts on; raises the SpecctlError of why it cannot be measured.

    `steal`: whoever holds it is to lose it.
    """
    host, server = pair
    with contacts([host]) as found:
        contact = found[host.name]
        if isinstance(contact, SpecctlError):
            raise contact
        try:
            yield _site(contact, server, steal=steal)
        except SpecctlError as error:
            error.host = error.host or host.name
            raise


def _site(contact: Contact, server: Server, *, steal: bool) -> Site:
    host_facts = reach(contact, server)
    facts = host_facts.servers[server.name]
    host = contact.host.name
    if facts.current is None or facts.unit.active != "active":
        raise UsageError(
            f"server {server.name} does not run, and what ran before is brought back at the end",
            hint=f"specctl {'deploy' if facts.current is None else 'start'} --host {host} --server {server.name}",
        )
    if facts.guard is not None:
        raise UsageError(f"server {server.name}: {facts.guard.words()}", hint="wait for its end: specctl status")
    if facts.lease is not None and not steal:
        raise LockHeldError(
            f"{facts.lease.owner} acts on server {server.name}", hint=f"specctl lock status --host {host}"
        )
    deployed = as_deployed(server, facts.current.manifest)
    client = EngineClient.of(contact, deployed)
    told = info(client)
    if client.get("/ready").status != 200 or told is None:
        raise UnhealthyError(f"server {server.name} does not serve now", hint=f"specctl health --host {host}")
    was = engine_info.claimed(told, server.profile, knobs(facts))
    if was is None:
        raise UnsupportedError("the engine does not tell which mode it runs", hint="specctl ab compares two modes")
    return Site(
        contact=contact,
        inventory=server,
        server=deployed,
        host_facts=host_facts,
        facts=facts,
        client=client,
        told=told,
        was=was,
    )


def knobs(facts: ServerFacts) -> Mapping[str, Mapping[str, int]]:
    """Return the knobs of each algo that the release on the host can run."""
    manifest = facts.current.manifest if facts.current is not None else {}
    return {algo: stored_knobs(manifest, algo) for algo in stored_units(manifest)}


def facts_of(host_facts: HostFacts, facts: ServerFacts, server: Server, told: EngineInfo | None, prompts: str) -> Facts:
    """Return what a calibration holds for; the context is known once something was measured."""
    gpus = [gpu for gpu in host_facts.graphics.gpus or () if not server.gpus or gpu.index in server.gpus]
    models = sorted({gpu.model for gpu in gpus if gpu.model is not None})
    whole = bool(gpus) and all(gpu.model is not None for gpu in gpus)
    rows = "\n".join(f"{name} {found}" for name, found in sorted(facts.package_digests.items()))
    return Facts(
        gpu=", ".join(models) if whole else None,
        gpu_count=len(gpus) if whole else None,
        driver=host_facts.graphics.driver,
        profile=server.profile.name,
        engine_version=None if told is None else told.version,
        packages=hashlib.sha256(rows.encode()).hexdigest()[:12] if rows else None,
        target=server.target.name,
        draft=None if server.draft is None else server.draft.name,
        tensor_parallel=server.tp,
        prompts=prompts,
    )
