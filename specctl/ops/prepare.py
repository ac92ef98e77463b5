"""Prepare an act on one server: facts, rendered release, plan, checks; nothing on the host is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specctl.adapters.redaction import Redactor
from specctl.adapters.secrets import resolve_secret
from specctl.errors import RemoteCommandError, SpecctlError
from specctl.fleet.types import Server
from specctl.ops import render
from specctl.ops.agent_note import Letter
from specctl.ops.contact import Contact
from specctl.ops.preflight import examine, gather, refusal
from specctl.rollout import launch as launches
from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.launch import Launch
from specctl.rollout.plan import Plan, of_release
from specctl.rollout.release import Release

if TYPE_CHECKING:
    from specctl.adapters.templates import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """All that is needed to check a plan and to carry it out; `release` None: the files are on the host already.

    `digests`: SHA-256 of the release's files by name, secret ones left out. `told`: what the host's agent is told by a deploy.
    """

    contact: Contact
    server: Server
    facts: ServerFacts
    host_facts: HostFacts
    plan: Plan
    launch: Launch
    digests: Mapping[str, str]
    release: Release | None = None
    told: Letter | None = None


def checked(item: Prepared, skipped: Mapping[str, str], *, served: bool) -> Prepared:
    """Return the plan with what preflight says of it; nothing is checked where nothing is to be done."""
    if item.plan.nothing is not None:
        return item
    report = examine(item.contact, item.server, item.launch, item.host_facts, skipped, served=served)
    return replace(item, plan=replace(item.plan, checks=report))


def refused(item: Prepared) -> SpecctlError | None:
    """Return why the plan must not be carried out, or None."""
    return refusal(item.plan.checks, item.contact.host.name) if item.plan.checks else None


def secrets_of(server: Server) -> Mapping[str, str]:
    """Read the secrets that a server refers to; raises UsageError for one that is missing."""
    return {name: resolve_secret(ref).reveal() for name, ref in server.secrets.items()}


def demand_readable(contact: Contact, facts: ServerFacts) -> None:
    """Raise RemoteCommandError where it is not known what is deployed: that is not the same as nothing."""
    if facts.trouble is not None:
        host = contact.host.name
        raise RemoteCommandError(facts.trouble, hint=facts.remedy(host), host=host)


def read_release(contact: Contact, server: Server, release: str) -> tuple[Mapping[str, object], Mapping[str, str]]:
    """Return a release's manifest and the text of its files, secret ones left out; raises when there is no such release."""
    answer = contact.call("release.read", server, {"id": release})
    manifest, files = answer.get("manifest"), answer.get("files")
    texts = {str(name): str(text) for name, text in files.items()} if isinstance(files, Mapping) else {}
    return (manifest if isinstance(manifest, Mapping) else {}), texts


def prepare(contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
    """Find out what a deploy of the algo would change; raises SpecctlError when it could not work."""
    launch = launches.build(contact.host, server, algo)
    values = secrets_of(server)
    contact.redactor = Redactor(tuple(values.values()))
    host_facts = gather(contact, (server,))
    facts = host_facts.servers[server.name]
    demand_readable(contact, facts)
    compared_id = facts.current.id if facts.current else "1"
    release = render.release(templates, contact.host, server, release_id=compared_id, secrets=values)
    plan = of_release(release, algo, facts, host=contact.host.name, force=force)
    if plan.release != compared_id:
        release = render.release(templates, contact.host, server, release_id=plan.release, secrets=values)
    return Prepared(
        contact=contact,
        server=server,
        facts=facts,
        host_facts=host_facts,
        plan=plan,
        launch=launch,
        digests=release.digests(),
        release=release,
    )
