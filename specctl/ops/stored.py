"""Prepare an act on a release that lies on the host already: switch to another of its algos, roll back, restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from specctl.adapters.redaction import Redactor
from specctl.errors import RemoteCommandError, SpecctlError, UnsupportedError, UsageError
from specctl.fleet.types import Server
from specctl.ops.contact import Contact
from specctl.ops.preflight import gather
from specctl.ops.prepare import Prepared, read_release, secrets_of
from specctl.rollout import launch as launches
from specctl.rollout.facts import (
    CurrentRelease,
    HostFacts,
    ServerFacts,
    as_deployed,
    stored_digests,
    stored_knobs,
    stored_launch,
    stored_units,
)
from specctl.rollout.plan import Wish, make
from specctl.rollout.record import Result

if TYPE_CHECKING:
    from specctl.adapters.templates import Templates


def current_of(contact: Contact, facts: ServerFacts) -> CurrentRelease:
    """Return what the host is set to start, or raise UsageError when nothing was ever deployed."""
    if facts.current is None:
        raise UsageError(
            f"server {facts.name} is not deployed",
            hint=f"specctl deploy --host {contact.host.name}",
            host=contact.host.name,
        )
    return facts.current


def whole_release(contact: Contact, server: Server, release: str) -> tuple[Mapping[str, object], Mapping[str, str]]:
    """Return manifest and files of a release on the host; raises RemoteCommandError when it is missing or damaged."""
    manifest, texts = read_release(contact, server, release)
    problems = contact.call("release.verify", server, {"id": release}).get("problems")
    if isinstance(problems, list) and problems:
        raise RemoteCommandError(
            f"release {release} is damaged on the host: {problems[0]}",
            hint="specctl deploy writes a new one",
            host=contact.host.name,
        )
    return manifest, texts


def prepare_stored(
    contact: Contact, server: Server, release: str, algo: str, *, host_facts: HostFacts, force: bool
) -> Prepared:
    """Plan a release that is on the host; raises UnsupportedError when it was not rendered with the algo."""
    facts = host_facts.servers[server.name]
    manifest, texts = whole_release(contact, server, release)
    units = stored_units(manifest)
    if algo not in units:
        raise UnsupportedError(
            f"release {release} has no {algo} (it has {', '.join(units) or 'nothing'})",
            hint=f"specctl deploy --host {contact.host.name} --algo {algo}",
            host=contact.host.name,
        )
    launch, knobs = stored_launch(manifest, algo), stored_knobs(manifest, algo)
    wish = Wish(
        host=contact.host.name,
        server=server.name,
        algo=algo,
        release=release,
        launch=launch,
        knobs=knobs,
        unit_name=units[algo],
        unit_text=texts.get(units[algo], ""),
    )
    plan = make(wish, facts, files=(), writes=False, force=force)
    return Prepared(
        contact=contact,
        server=as_deployed(server, manifest),
        facts=facts,
        host_facts=host_facts,
        plan=plan,
        launch=launches.stored(contact.host, server, algo, launch, knobs, release),
        digests=stored_digests(manifest),
    )


def reach(contact: Contact, server: Server, *, brief: bool = False) -> HostFacts:
    """Gather a server's facts and learn its secrets, as far as they can be read here, so that they are blotted out.

    `brief` leaves the host's own facts out, for commands that check nothing.
    """
    contact.redactor = Redactor(tuple(_known_secrets(server).values()))
    return gather(contact, (server,), brief=brief)


def reach_deployed(contact: Contact, server: Server) -> tuple[Server, ServerFacts]:
    """Gather a server's brief facts at the address of what runs there, which an older release may have set."""
    facts = reach(contact, server, brief=True).servers[server.name]
    if facts.current is None:
        return server, facts
    deployed = as_deployed(server, facts.current.manifest)
    if (deployed.port, deployed.bind) == (server.port, server.bind):
        return server, facts
    return deployed, gather(contact, (deployed,), brief=True).servers[server.name]


def _known_secrets(server: Server) -> Mapping[str, str]:
    """Return the secrets that can be read here: a stored release has its own, these only serve to redact and to ask the engine."""
    try:
        return secrets_of(server)
    except SpecctlError:
        return {}


def prepare_switch(contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
    """Plan a change of algo within the release that is deployed; the inventory's other changes stay out of it."""
    del templates  # nothing is rendered
    host_facts = reach(contact, server)
    current = current_of(contact, host_facts.servers[server.name])
    return prepare_stored(contact, server, current.id, algo, host_facts=host_facts, force=force)


def prepare_restart(contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
    """Plan a restart of what is deployed, as it is."""
    del templates, algo, force
    host_facts = reach(contact, server)
    current = current_of(contact, host_facts.servers[server.name])
    return prepare_stored(contact, server, current.id, current.algo, host_facts=host_facts, force=True)


def last_good(facts: ServerFacts) -> tuple[str, str] | None:
    """Return what served before the present release, by the records: the newest healthy one that differs from it."""
    now = (facts.current.id, facts.current.algo) if facts.current else None
    for row in reversed(facts.records):
        serving = row.get("serving")
        if row.get("result") not in (Result.DONE.value, Result.ROLLED_BACK.value) or not isinstance(serving, list):
            continue
        if len(serving) == 2 and (pair := (str(serving[0]), str(serving[1]))) != now and pair[0] in facts.releases:
            return pair
    return None


class RollBackTo:
    """Prepares a rollback: to the release named, else to what served before."""

    def __init__(self, release: str | None) -> None:
        self.release = release

    def __call__(self, contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
        """Plan the way back; `algo` matters only for a release that is named."""
        del templates, force
        host_facts = reach(contact, server)
        found = last_good(host_facts.servers[server.name])
        if self.release is not None:
            found = (self.release, algo)
            units = stored_units(whole_release(contact, server, self.release)[0])
            if algo not in units and units:
                found = (self.release, next(iter(units)))
        if found is None:
            raise UsageError(
                f"server {server.name} has no earlier healthy release to go back to",
                hint=f"specctl history --host {contact.host.name}",
                host=contact.host.name,
            )
        return prepare_stored(contact, server, *found, host_facts=host_facts, force=True)
