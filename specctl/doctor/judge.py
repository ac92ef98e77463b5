"""Put evidence to all checks and order what comes of it; pure, called by ops/doctor.py and by tests."""

from __future__ import annotations

from dataclasses import replace

from specctl.doctor.catalogue import by_id
from specctl.doctor.evidence import Evidence
from specctl.doctor.types import Beside, Check, Clear, Finding, Hit, Passed, Report, Unknown, Unsure
from specctl.errors import for_host
from specctl.lint.types import Severity

_ORDER = {severity: place for place, severity in enumerate(Severity)}


def judge(evidence: Evidence) -> Report:
    """Run every check; findings come in order of severity, then of id."""
    findings: list[Finding] = []
    passed: list[Passed] = []
    unknown: list[Unknown] = []
    for check in by_id().values():
        verdict = check.judge(evidence)
        match verdict:
            case Unsure(reason=reason, decide=decide, partly=partly):
                unknown.append(Unknown(id=check.id, title=check.title, reason=reason, decide=decide, partly=partly))
            case Clear(note=note):
                passed.append(Passed(id=check.id, title=check.title, note=note))
            case Beside():
                pass
            case Hit():
                findings.append(_finding(check, verdict))
            case _:
                findings.extend(_finding(check, hit) for hit in verdict)
    findings.sort(key=lambda one: (_ORDER[one.severity], one.id))
    return named(Report(findings=tuple(findings), passed=tuple(passed), unknown=tuple(unknown)), evidence.host)


def named(report: Report, host: str | None) -> Report:
    """Return the report with the host's name in its commands, where there is a host."""
    if host is None:
        return report

    def place(words: str) -> str:
        return for_host(words, host)

    return Report(
        findings=tuple(replace(one, remedy=place(one.remedy), effect=place(one.effect)) for one in report.findings),
        passed=report.passed,
        unknown=tuple(replace(one, decide=place(one.decide)) for one in report.unknown),
    )


def _finding(check: Check, hit: Hit) -> Finding:
    return Finding(
        id=check.id,
        title=hit.title or check.title,
        message=hit.message,
        meaning=check.meaning,
        evidence=hit.evidence,
        effect=hit.effect or check.effect,
        remedy=hit.remedy or check.remedy,
        severity=hit.severity or check.severity,
        confidence=hit.confidence,
    )
