"""What an install of the agent would do on a host, and how the agent of a host is: values that ops fill and ui shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.errors import SpecctlError
from specctl.rollout.wheel_tags import Interpreter


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What an install would do on one host; `nothing` says why there is nothing to do, `unfit` which interpreters will not do."""

    host: str
    version: str
    before: str | None
    python: Interpreter
    wheels: Mapping[str, str]
    units: Mapping[str, str]
    config: Mapping[str, object]
    unfit: tuple[str, ...] = ()
    nothing: str | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the plan (docs/json.md)."""
        return {
            "host": self.host,
            "version": self.version,
            "before": self.before,
            "python": self.python.path,
            "python_version": self.python.text,
            "wheels": dict(self.wheels),
            "units": sorted(self.units),
            "config": dict(self.config),
            "nothing": self.nothing,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One host's agent: what is installed, what systemd says of it, and what it says of itself (empty: it does not answer)."""

    host: str
    version: str | None = None
    python: str | None = None
    state: str = "not installed"
    told: Mapping[str, object] = field(default_factory=dict)
    error: SpecctlError | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the row (docs/json.md)."""
        return {
            "host": self.host,
            "version": self.version,
            "python": self.python,
            "state": self.state,
            "agent": dict(self.told) if self.told else None,
            "error": dict(self.error.as_json()) if self.error else None,
        }
