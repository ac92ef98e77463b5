"""Audit an engine's figures: whether they contradict each other, or what its mode can do at all (design.md §7, "Metric truth").

Pure. Each check compares figures on one basis, and says nothing where one of them is unknown. The decision guard holds while a
finding blocks; `specctl doctor` shows all of them. One look is judged; how often a finding must come is the caller's affair. Each
ten seconds is often enough: lines and pages come no faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from specctl.control import audit_basis, audit_claims, audit_lengths
from specctl.control.audit_types import AuditInput, Finding, Unknown, Verdict

Check = Callable[[AuditInput], Verdict]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("M001", audit_lengths.longest),
    ("M002", audit_lengths.shortest),
    ("M003", audit_lengths.depth),
    ("M004", audit_lengths.commit_of_drafts),
    ("M005", audit_lengths.commit_of_steps),
    ("M006", audit_basis.tokens),
    ("M007", audit_basis.finished),
    ("M008", audit_basis.decode_time),
    ("M009", audit_basis.went_back),
    ("M010", audit_basis.running),
    ("M011", audit_claims.tree_lines),
    ("M012", audit_claims.verifies),
    ("M013", audit_claims.budget),
    ("M014", audit_claims.draft_tokens),
    ("M015", audit_lengths.nodes),
)
"""Every check by its id; ids are never given anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What came of all checks: `findings` contradict, `passed` and `unknown` are ids; the reason of an unknown is in `why`."""

    findings: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    why: tuple[str, ...] = field(default=())

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """Return the findings that touch what a decision is taken from."""
        return tuple(finding for finding in self.findings if finding.blocks)


def audit(given: AuditInput) -> Audit:
    """Run every check."""
    findings, passed, unknown, why = [], [], [], []
    for check_id, check in CHECKS:
        verdict = check(given)
        if isinstance(verdict, Finding):
            findings.append(verdict)
        elif isinstance(verdict, Unknown):
            unknown.append(check_id)
            why.append(verdict.reason)
        else:
            passed.append(check_id)
    return Audit(findings=tuple(findings), passed=tuple(passed), unknown=tuple(unknown), why=tuple(why))
