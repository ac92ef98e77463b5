"""What a rule is and what it finds: frozen values that ops, preflight and the views share."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from specctl.fleet.types import Origin
from specctl.lint.subject import Subject


class Severity(enum.Enum):
    """How bad it is: an error cannot work as meant, a warning may hurt, a note is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SEVERITY_OF: Mapping[str, Severity] = {"E": Severity.ERROR, "W": Severity.WARNING, "N": Severity.NOTE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place where a rule is not followed.

    `key` is the dotted path of the inventory value that is to blame, None where no value of the inventory is (an engine
    profile's own flag). `remedy` replaces the rule's where this place has a better one.
    """

    message: str
    key: str | None = None
    remedy: str | None = None


Check = Callable[[Subject], Iterable[Hit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: the first letter of its id is its severity. `check` None: judged over all launches of a server (run.settle)."""

    id: str
    title: str
    reason: str
    remedy: str
    check: Check | None

    @property
    def severity(self) -> Severity:
        """How bad it is when this rule is not followed."""
        return SEVERITY_OF[self.id[0]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules of one subject, as lint/catalogue.py finds them."""

    name: str
    title: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that a server does not follow: where, in which of its launches, and the reason of whoever waived it."""

    rule: Rule
    message: str
    remedy: str
    host: str
    server: str
    algos: tuple[str, ...]
    key: str | None = None
    origin: Origin | None = None
    waived: str | None = None

    @property
    def severity(self) -> Severity:
        """The severity of the rule, waived or not."""
        return self.rule.severity

    @property
    def is_error(self) -> bool:
        """Claim that this is an error that nobody waived."""
        return self.waived is None and self.severity is Severity.ERROR

    @property
    def is_warning(self) -> bool:
        """Claim that this is a warning that nobody waived."""
        return self.waived is None and self.severity is Severity.WARNING

    def as_json(self) -> Mapping[str, object]:
        """Return the finding as `--json` prints it."""
        origin = self.origin
        return {
            "id": self.rule.id,
            "severity": self.severity.value,
            "title": self.rule.title,
            "message": self.message,
            "reason": self.rule.reason,
            "remedy": self.remedy,
            "host": self.host,
            "server": self.server,
            "algos": list(self.algos),
            "key": self.key,
            "origin": None
            if origin is None
            else {"layer": origin.layer, "file": origin.file, "line": origin.line, "column": origin.column},
            "waived": self.waived,
        }
