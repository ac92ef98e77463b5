"""What a check of the doctor is and what it answers: frozen values that ops, the views and `--json` share."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from specctl.doctor.evidence import Evidence
from specctl.lint.types import Severity


class Confidence(enum.Enum):
    """How far a finding follows from its evidence: by itself, or with one assumption that its evidence names."""

    CERTAIN = "certain"
    LIKELY = "likely"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A check that found something: `message` says what, with figures; `evidence` where they come from, one line each.

    `title`, `effect`, `remedy` and `severity` replace the check's own where this case has better ones.
    """

    message: str
    evidence: tuple[str, ...] = ()
    title: str | None = None
    effect: str | None = None
    remedy: str | None = None
    severity: Severity | None = None
    confidence: Confidence = Confidence.CERTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """The evidence does not decide: what it lacks or how far it goes, and what would decide it (a command or a measurement).

    `partly`: it goes some of the way, with figures that a person should read.
    """

    reason: str
    decide: str
    partly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Looked at, and all is well; `note` says what agreed, with figures."""

    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The check is not of this kind of server (a tree's line of a chain); it counts neither as passed nor as unknown."""


Verdict = Hit | Unsure | Clear | Beside
Judge = Callable[[Evidence], Verdict | tuple[Hit, ...]]
"""A pure function of the evidence. Several hits of one check are a tuple that is not empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check. `looks_at` names its evidence, `meaning` what a finding of it says, `effect` what it costs in tokens.

    Ids: M is metric truth, S speed, C configuration, L losslessness; ids are never given anew.
    """

    id: str
    title: str
    meaning: str
    looks_at: str
    effect: str
    remedy: str
    severity: Severity
    judge: Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSet:
    """The checks of one subject, one module of specctl/doctor/checks each, as doctor/catalogue.py finds them."""

    name: str
    title: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A check's hit with all that the check says of it."""

    id: str
    title: str
    message: str
    meaning: str
    evidence: tuple[str, ...]
    effect: str
    remedy: str
    severity: Severity
    confidence: Confidence

    def as_wire(self) -> Mapping[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "id": self.id,
            "title": self.title,
            "message": self.message,
            "meaning": self.meaning,
            "evidence": list(self.evidence),
            "effect": self.effect,
            "remedy": self.remedy,
            "severity": self.severity.value,
            "confidence": self.confidence.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A check that the evidence does not decide; `partly`: the reason has figures that go some of the way."""

    id: str
    title: str
    reason: str
    decide: str
    partly: bool = False

    def as_wire(self) -> Mapping[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "id": self.id,
            "title": self.title,
            "reason": self.reason,
            "decide": self.decide,
            "partly": self.partly,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A check that looked and found nothing."""

    id: str
    title: str
    note: str = ""

    def as_wire(self) -> Mapping[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {"id": self.id, "title": self.title, "note": self.note}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of all checks of one server; findings are in order of weight, the gravest first."""

    findings: tuple[Finding, ...] = ()
    passed: tuple[Passed, ...] = ()
    unknown: tuple[Unknown, ...] = ()

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "findings": [one.as_wire() for one in self.findings],
            "passed": [one.as_wire() for one in self.passed],
            "unknown": [one.as_wire() for one in self.unknown],
        }
