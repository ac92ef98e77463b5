"""Prepare an act on a release that lies on the host already: switch to another of its algos, roll back, restart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from specctl.adapters.redaction import Redactor
from specctl.adapters.secrets import resolve_secret
from specctl.engines._command import CONFIG_FILE, CONFIG_SECRETS
from specctl.errors import RemoteCommandError, SpecctlError, UnsupportedError, UsageError
from specctl.fleet.types import Host, Server
from specctl.ops.contact import Contact
from specctl.ops.engine_http import EngineClient
from specctl.ops.preflight import gather
from specctl.ops.prepare import Prepared, demand_readable, read_release, secrets_of
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

# As the host has it (host/releases.py).
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def current_of(contact: Contact, facts: ServerFacts) -> CurrentRelease:
    """Return what the host is set to start; UsageError when that is nothing, RemoteCommandError when it is not known."""
    demand_readable(contact, facts)
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
            hint=f"specctl deploy --host {contact.host.name} writes a new one",
            host=contact.host.name,
        )
    return manifest, texts


def demand_key(host: Host, server: Server, manifest: Mapping[str, object]) -> None:
    """Refuse to ask a release that has a key, and is given none here: what it answers with 401 would look like its failure.

    Raises UsageError.
    """
    sealed = manifest.get("secrets")
    if not isinstance(sealed, Mapping) or CONFIG_FILE not in sealed:
        return
    named = [server.secrets[name] for name in CONFIG_SECRETS if name in server.secrets]
    if not named:
        raise UsageError(
            f"release {manifest.get('id')} has an API key, and the inventory names none",
            hint=f"give servers.{server.name}.secrets.api_key, or specctl deploy --host {host.name}",
            host=host.name,
        )
    try:
        for ref in named:
            resolve_secret(ref)
    except UsageError as error:
        error.host = host.name
        raise


def demand_accepted_key(contact: Contact, server: Server, facts: ServerFacts) -> None:
    """Refuse to go on with a running engine that does not take our key; raises UsageError.

    `server` is at the address of what runs. One that gives no answer says nothing of the key.
    """
    current = current_of(contact, facts)
    demand_key(contact.host, server, current.manifest)
    if facts.unit.active != "active" or not EngineClient.of(contact, server).key_refused():
        return
    ref = server.secrets.get("api_key")
    key = "it wants one, and the inventory names none" if ref is None else f"{ref} is not that of release {current.id}"
    raise UsageError(
        f"the running engine refuses our API key: {key}",
        hint=f"set the key of release {current.id}, or specctl deploy --host {contact.host.name}",
        host=contact.host.name,
    )


def prepare_stored(
    contact: Contact, server: Server, release: str, algo: str, *, host_facts: HostFacts, force: bool
) -> Prepared:
    """Plan a release that is on the host; raises UnsupportedError when it was not rendered with the algo."""
    facts = host_facts.servers[server.name]
    manifest, texts = whole_release(contact, server, release)
    demand_key(contact.host, server, manifest)
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
    current = _kept(contact, server, host_facts)
    return prepare_stored(contact, server, current.id, algo, host_facts=host_facts, force=force)


def prepare_restart(contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
    """Plan a restart of what is deployed, as it is."""
    del templates, algo, force
    host_facts = reach(contact, server)
    current = _kept(contact, server, host_facts)
    return prepare_stored(contact, server, current.id, current.algo, host_facts=host_facts, force=True)


def _kept(contact: Contact, server: Server, host_facts: HostFacts) -> CurrentRelease:
    """Return the current release, for an act that starts it again and then asks it; refuses where it would not answer us."""
    facts = host_facts.servers[server.name]
    current = current_of(contact, facts)
    demand_accepted_key(contact, as_deployed(server, current.manifest), facts)
    return current


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

    def __init__(self, release: str | None, algo: str | None = None) -> None:
        if release is not None and not NAME.fullmatch(release):
            raise UsageError(f"--release {release} is no name of a release", hint="specctl history shows them")
        if algo is not None and release is None:
            raise UsageError(
                "what served before has its own algo: --algo goes with --release",
                hint=f"name the release too, or specctl switch --algo {algo}",
            )
        self.release = release
        self.algo = algo

    def __call__(self, contact: Contact, server: Server, algo: str, *, templates: Templates, force: bool) -> Prepared:
        """Plan the way back; a release that lacks the inventory's `algo` comes back with one that it has."""
        del templates, force
        host_facts = reach(contact, server)
        found = last_good(host_facts.servers[server.name])
        if self.release is not None:
            found = (self.release, self.algo or algo)
            units = stored_units(whole_release(contact, server, self.release)[0])
            if self.algo is None and algo not in units and units:
                found = (self.release, next(iter(units)))
        if found is None:
            raise UsageError(
                f"server {server.name} has no earlier healthy release to go back to",
                hint=f"specctl history --host {contact.host.name}",
                host=contact.host.name,
            )
        return prepare_stored(contact, server, *found, host_facts=host_facts, force=True)
