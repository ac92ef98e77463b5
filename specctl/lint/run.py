"""Lint one launch, and put the findings of all launches of a server together; pure, called by ops/lint.py and preflight."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from specctl.fleet.types import Host, Origin, Server
from specctl.lint.catalogue import by_id
from specctl.lint.subject import Subject
from specctl.lint.types import Finding, Hit, Rule, Severity

_ORDER = {severity: place for place, severity in enumerate(Severity)}
_Reported = tuple[Host, Server, Sequence[Finding]]


def lint(subject: Subject) -> tuple[Finding, ...]:
    """Return everything that the rules find in one launch, the gravest first; what is waived carries its reason."""
    found = [
        _finding(subject, rule, hit)
        for rule in by_id().values()
        if rule.check is not None
        for hit in rule.check(subject)
    ]
    return _ordered(dict.fromkeys(found))


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put the findings of several launches of one server together: one that holds for several algos stands once."""
    kept: dict[Finding, list[str]] = {}
    for one in findings:
        algos = kept.setdefault(dataclasses.replace(one, algos=()), [])
        algos.extend(algo for algo in one.algos if algo not in algos)
    return _ordered(dataclasses.replace(one, algos=tuple(algos)) for one, algos in kept.items())


def unused(reports: Iterable[_Reported], *, whole: bool) -> tuple[Finding, ...]:
    """Return a note for each waiver that silenced nothing.

    One that several servers share counts as used where it silences something on any of them. `whole` says that the reports
    are of the whole inventory; else only waivers of a host's own are judged, since others may be needed elsewhere.
    """
    notes: dict[object, Finding] = {}
    used: set[object] = set()
    for host, server, findings in reports:
        silenced = {one.rule.id for one in findings if one.waived is not None}
        for waiver in server.waivers:
            origin = server.provenance.get(f"waivers.{waiver.rule}")
            place: object = (waiver.rule, origin) if origin is not None else (waiver.rule, host.name, server.name)
            if waiver.rule in silenced or waiver.rule not in by_id():
                used.add(place)
            elif whole or (origin is not None and origin.layer.startswith("host:")):
                notes.setdefault(place, _unused(host, server, waiver.rule, origin))
    return tuple(note for place, note in notes.items() if place not in used)


def _unused(host: Host, server: Server, rule_id: str, origin: Origin | None) -> Finding:
    rule = by_id()["N090"]
    return Finding(
        rule=rule,
        message=f"{rule_id} ({by_id()[rule_id].title}) is waived, and nothing here breaks it",
        remedy=rule.remedy,
        host=host.name,
        server=server.name,
        algos=(),
        key=f"waivers.{rule_id}",
        origin=origin,
    )


def _finding(subject: Subject, rule: Rule, hit: Hit) -> Finding:
    waived = next((waiver.reason for waiver in subject.server.waivers if waiver.rule == rule.id), None)
    return Finding(
        rule=rule,
        message=hit.message,
        remedy=hit.remedy or rule.remedy,
        host=subject.host.name,
        server=subject.server.name,
        algos=(subject.launch.algo,),
        key=hit.key,
        origin=subject.origin(hit.key),
        waived=waived,
    )


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(findings, key=lambda one: (one.waived is not None, _ORDER[one.severity], one.rule.id, one.message))
    )
