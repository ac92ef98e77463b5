"""Check launches on their hosts before anything is touched: for `specctl preflight`, and inside every act that starts a server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from specctl.errors import SpecctlError, UnsupportedError, UsageError
from specctl.fleet.suggest import nearest
from specctl.fleet.types import Host, Model, Server
from specctl.lint.catalogue import by_id
from specctl.lint.run import lint as lint_launch
from specctl.lint.types import Severity
from specctl.ops import capability
from specctl.ops import lint as linter
from specctl.ops.contact import Contact, each, manager
from specctl.rollout import launch as launches
from specctl.rollout import reading, unit
from specctl.rollout.facts import HostFacts
from specctl.rollout.launch import Launch
from specctl.rollout.preflight import catalogue
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Finding, Level, Report

FACTS_TIMEOUT_S = 30.0
Pair = tuple[Host, Server]


def gather(contact: Contact, servers: Sequence[Server], *, brief: bool = False) -> HostFacts:
    """Ask a host for its cheap facts and those of the servers named, in one round trip; `brief`: of the servers alone."""
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
    answer = contact.session.call("facts", {"servers": rows, "brief": brief}, timeout_s=FACTS_TIMEOUT_S)
    return HostFacts.from_wire(contact.host.name, answer, time.time())


def _as_launched(server: Server, subject: Subject) -> Server:
    """Return the server with the interpreter and the folders that the launch names, which a stored one has of its own."""
    found = server
    if subject.argv and subject.argv[0] != server.python:
        found = replace(found, python=subject.argv[0])
    target, draft = subject.path_of("target"), subject.path_of("draft")
    if target is not None and target != server.target.path:
        found = replace(found, target=Model(name=server.target.name, path=target))
    if draft is not None and (server.draft is None or draft != server.draft.path):
        found = replace(found, draft=Model(name=server.draft.name if server.draft else "draft", path=draft))
    return found


def examine(
    contact: Contact,
    server: Server,
    launch: Launch,
    host_facts: HostFacts,
    skipped: Mapping[str, str],
    *,
    served: bool = False,
) -> Report:
    """Run every check on a launch; facts about folders that were not asked for yet are fetched.

    `served`: the launch served before (it is gone back to, or restarted), so that what the linter thinks of it refuses nothing.
    """
    subject = Subject.of(contact.host, server, launch, host_facts)
    launched = _as_launched(server, subject)
    if launched != server:
        subject = replace(subject, host_facts=gather(contact, (launched,)))
    python = subject.argv[0] if subject.argv else server.python
    said = capability.ask(contact, launched, subject.facts, launch, python=python)
    more = linted(contact.host, server, launch, served=served)
    return catalogue.run(replace(subject, capability=said), skipped=skipped, more=more)


def linted(host: Host, server: Server, launch: Launch, *, served: bool = False) -> tuple[Finding, ...]:
    """Return what the linter says of the launch, as findings that join the report; its notes stay with `specctl lint`."""
    worst = Level.WARN if served else Level.FAIL
    found = lint_launch(linter.subject(host, server, launch, elsewhere=catalogue.IDS))
    return tuple(
        Finding(
            id=one.rule.id,
            title=one.rule.title,
            level=worst if one.severity is Severity.ERROR else Level.WARN,
            reason=one.message,
            remedy=one.remedy,
            waived=one.waived,
        )
        for one in found
        if one.severity in (Severity.ERROR, Severity.WARNING)
    )


def refusal(report: Report, host: str) -> SpecctlError | None:
    """Return the error that an act ends with before it begins; None where every check lets it through."""
    if not report.refusals:
        return None
    first = report.refusals[0]
    others = ", ".join(finding.id for finding in report.refusals[1:])
    more = f" (and {others})" if others else ""
    return UnsupportedError(
        f"{first.id} {first.reason}{more}",
        hint=f"{first.remedy} (or pass it over: --skip-check {first.id})",
        host=host,
    )


def judged(host: str, found: object) -> SpecctlError | None:
    """Return the error that one server's checks end the command with: it could not be asked, or a check failed."""
    if isinstance(found, SpecctlError):
        return found
    return refusal(found, host) if isinstance(found, Report) else None


def preflight(
    selected: Sequence[Pair], algo: str | None, skipped: Mapping[str, str]
) -> Mapping[tuple[str, str], object]:
    """Return what a deploy would be told on every selected server: a Report, or a SpecctlError where it cannot be asked."""

    def one(contact: Contact, server: Server) -> Report:
        launch = launches.build(contact.host, server, algo or server.algo)
        return examine(contact, server, launch, gather(contact, (server,)), skipped)

    return each(selected, one)


def facts(selected: Sequence[Pair]) -> Mapping[str, HostFacts | SpecctlError]:
    """Return the facts of every selected host and of its selected servers, one round trip a host."""
    by_host: dict[str, list[Server]] = {}
    for host, server in selected:
        by_host.setdefault(host.name, []).append(server)
    one_each = list({host.name: (host, server) for host, server in selected}.values())
    found = each(one_each, lambda contact, _: gather(contact, by_host[contact.host.name]))
    return {name: value for (name, _), value in found.items() if isinstance(value, (HostFacts, SpecctlError))}


def skips(given: Sequence[str] | None, reason: str | None) -> Mapping[str, str]:
    """Read --skip-check ID or ID=REASON; raises UsageError for a check that there is none of."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, why = text.partition("=")
        known = {*catalogue.IDS, *by_id()}
        if name not in known:
            near = nearest(name, sorted(known))
            raise UsageError(
                f"there is no check {name}",
                hint=f"--skip-check {near}" if near else "specctl preflight lists the checks",
            )
        found[name] = why or reason or "skipped on the command line"
    return found


def as_wire(found: Mapping[tuple[str, str], object]) -> list[Mapping[str, object]]:
    """Return the JSON rows of `specctl preflight` (docs/json.md)."""
    rows: list[Mapping[str, object]] = []
    for (host, server), value in found.items():
        error = value.as_json() if isinstance(value, SpecctlError) else None
        report = value.as_wire() if isinstance(value, Report) else Report().as_wire()
        rows.append({"host": host, "server": server, "checks": report, "error": reading.mapping(error) or None})
    return rows
