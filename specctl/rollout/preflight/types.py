"""What a check is and what it says: a level, a reason with the figures, a remedy; and the report that all of them add up to."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specctl.rollout.preflight.subject import Subject


class Level(enum.Enum):
    """How a check ends. What cannot be known is never a failure."""

    PASS = "pass"  # noqa: S105  # a word, not a password
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check found; `remedy` None: the check's own is meant."""

    level: Level
    reason: str
    remedy: str | None = None


def passed(reason: str) -> Verdict:
    """Return a verdict that all is well."""
    return Verdict(level=Level.PASS, reason=reason)


def warned(reason: str, remedy: str | None = None) -> Verdict:
    """Return a verdict that people should know."""
    return Verdict(level=Level.WARN, reason=reason, remedy=remedy)


def failed(reason: str, remedy: str | None = None) -> Verdict:
    """Return a verdict that the launch cannot work."""
    return Verdict(level=Level.FAIL, reason=reason, remedy=remedy)


def unknown(reason: str) -> Verdict:
    """Return a verdict that it could not be found out."""
    return Verdict(level=Level.UNKNOWN, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question about a launch on a host; `look` returns None where it does not apply.

    `worst` is the gravest level that it can end with. `remedy` may name {host} and {server}. `why` is for the documentation.
    `measures` names the linter's rules that guess from the inventory what this check measured: with a verdict here they are silent.
    """

    id: str
    title: str
    worst: Level
    remedy: str
    why: str
    look: Callable[[Subject], Verdict | None]
    measures: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check (or a rule of the linter) says of this launch; `waived` is the reason why it is let through."""

    id: str
    title: str
    level: Level
    reason: str
    remedy: str
    waived: str | None = None

    @property
    def refuses(self) -> bool:
        """Claim that the act must not be carried out."""
        return self.level is Level.FAIL and self.waived is None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "id": self.id,
            "title": self.title,
            "level": self.level.value,
            "reason": self.reason,
            "remedy": self.remedy,
            "waived": self.waived,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings about one launch on one host, in the order of their ids."""

    findings: tuple[Finding, ...] = ()

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Return what keeps the act from being carried out."""
        return tuple(finding for finding in self.findings if finding.refuses)

    @property
    def skipped(self) -> Mapping[str, str]:
        """Return the failures that somebody decided to pass over, id to reason, as the record keeps them."""
        return {one.id: one.waived for one in self.findings if one.level is Level.FAIL and one.waived is not None}

    def told(self) -> tuple[Finding, ...]:
        """Return what a person reads before saying yes: failures first, then warnings; what is waived is counted alone."""
        live = [finding for finding in self.findings if finding.waived is None]
        return tuple(one for level in (Level.FAIL, Level.WARN) for one in live if one.level is level)

    def counts(self) -> Mapping[str, int]:
        """Return how many findings ended how, by the words of the summary; a waived one counts as that alone."""
        words = ["waived" if self._is_waived(finding) else finding.level.value for finding in self.findings]
        order = ["pass", "warn", "fail", "unknown", "waived"]
        return {word: words.count(word) for word in order if word in words}

    @staticmethod
    def _is_waived(finding: Finding) -> bool:
        return finding.waived is not None and finding.level in (Level.WARN, Level.FAIL)

    def summary(self) -> str:
        """Return the counts as the plan shows them: 14 pass, 1 warn."""
        return ", ".join(f"{count} {word}" for word, count in self.counts().items()) or "none apply"

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {"counts": dict(self.counts()), "findings": [finding.as_wire() for finding in self.findings]}
