"""What came of one act on one server, and the exit code that several outcomes add up to (design: 8, 7, 6 win in this order)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specctl import errors
from specctl.errors import SpecctlError
from specctl.fleet.types import Host, Server
from specctl.rollout.plan import Plan
from specctl.rollout.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one act on one server; `error` None: it did what was asked (or there was nothing to do)."""

    host: str
    server: str | None = None
    error: SpecctlError | None = None
    record: Record | None = None
    plan: Plan | None = None
    skipped: str | None = None

    @property
    def ok(self) -> bool:
        """Claim that what was asked for is so."""
        return self.error is None and self.skipped is None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the outcome (docs/json.md)."""
        return {
            "host": self.host,
            "server": self.server,
            "ok": self.ok,
            "error": dict(self.error.as_json()) if self.error else None,
            "skipped": self.skipped,
            "record": self.record.as_wire() if self.record else None,
            "plan": self.plan.as_wire() if self.plan else None,
        }


def as_selected(outcomes: Sequence[Outcome], selected: Sequence[tuple[Host, Server]]) -> tuple[Outcome, ...]:
    """Return outcomes in the order in which their servers were selected: hosts end in any order."""
    places = {(host.name, server.name): place for place, (host, server) in enumerate(selected)}
    return tuple(sorted(outcomes, key=lambda one: places[one.host, one.server or ""]))


def failures(found: Mapping[tuple[str, str], object]) -> tuple[Outcome, ...]:
    """Return the outcomes of servers, by host and name, of which a SpecctlError came."""
    return tuple(
        Outcome(host=host, server=server, error=error)
        for (host, server), error in found.items()
        if isinstance(error, SpecctlError)
    )


# Of several failures of different kinds the earlier one here gives the exit code.
GRAVITY = (
    errors.EXIT_NO_HEALTHY_RELEASE,
    errors.EXIT_PARTIAL,
    errors.EXIT_ROLLED_BACK,
    errors.EXIT_BUG,
    errors.EXIT_REMOTE_COMMAND,
    errors.EXIT_CONNECT,
    errors.EXIT_LOCK_HELD,
    errors.EXIT_USAGE,
)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Return the exit code of a command: the one failure's own, 7 when only some hosts failed, 8 above all."""
    failures = [o.error.exit_code if o.error else errors.EXIT_PARTIAL for o in outcomes if not o.ok]
    return summed(failures, of=len(outcomes))


def summed(failures: Sequence[int], *, of: int) -> int:
    """Return the exit code of a command `of` so many servers that failed on some with these codes of their own."""
    if not failures:
        return errors.EXIT_OK
    if errors.EXIT_NO_HEALTHY_RELEASE in failures:
        return errors.EXIT_NO_HEALTHY_RELEASE
    if len(failures) < of:
        return errors.EXIT_PARTIAL
    return min(failures, key=lambda code: GRAVITY.index(code) if code in GRAVITY else len(GRAVITY))
