"""All checks in the order of their ids, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specctl.rollout.preflight import devices, engine, memory, models, nccl, service
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Finding, Level, Report

CHECKS: tuple[Check, ...] = (
    *service.CHECKS,
    *engine.CHECKS,
    *models.CHECKS,
    *devices.CHECKS,
    *memory.CHECKS,
    *nccl.CHECKS,
)
IDS = frozenset(check.id for check in CHECKS)


def _finding(check: Check, subject: Subject, waivers: Mapping[str, str]) -> Finding | None:
    verdict = check.look(subject)
    if verdict is None:
        return None
    remedy = verdict.remedy or check.remedy.format(host=subject.host.name, server=subject.server.name)
    return Finding(
        id=check.id,
        title=check.title,
        level=verdict.level,
        reason=verdict.reason,
        remedy=remedy,
        waived=waivers.get(check.id),
    )


def run(subject: Subject, *, skipped: Mapping[str, str], more: Iterable[Finding] = ()) -> Report:
    """Check a launch on a host; `skipped` are checks to pass over, id to reason, beside the inventory's waivers.

    `more` are findings of others that join the report, such as the linter's; what is skipped of them counts as waived too.
    """
    waivers = {**{waiver.rule: waiver.reason for waiver in subject.server.waivers}, **skipped}
    own = [found for check in CHECKS if (found := _finding(check, subject, waivers)) is not None]
    measured = {rule for check in CHECKS for rule in check.measures if _is_told(check, own)}
    others = [_waived(finding, skipped) for finding in more if finding.id not in measured]
    return Report(findings=(*own, *others))


def _is_told(check: Check, findings: Iterable[Finding]) -> bool:
    """Claim that a check came to a verdict."""
    return any(finding.id == check.id and finding.level is not Level.UNKNOWN for finding in findings)


def _waived(finding: Finding, skipped: Mapping[str, str]) -> Finding:
    if finding.waived is not None or finding.id not in skipped:
        return finding
    return Finding(
        id=finding.id,
        title=finding.title,
        level=finding.level,
        reason=finding.reason,
        remedy=finding.remedy,
        waived=skipped[finding.id],
    )
