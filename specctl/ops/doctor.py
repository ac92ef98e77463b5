"""Examine servers: gather evidence of each over one connection a host, and judge it; no host's failure hides another's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.types import Report
from specctl.errors import ConnectError, LockHeldError, SpecctlError
from specctl.fleet.types import Host, Server
from specctl.ops import doctor_gather, doctor_live, doctor_probe
from specctl.ops.contact import Contact, each
from specctl.ops.doctor_gather import Subject, Wish
from specctl.ops.load import Progress

Pair = tuple[Host, Server]
Show = Callable[[str, Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What came of one server: the report, or why there is none. `mode`: what it was thought to run; `up_s`: since when."""

    host: str
    server: str
    profile: str | None = None
    mode: Mode | None = None
    up_s: float | None = None
    log_lines: int | None = None
    report: Report = field(default_factory=Report)
    error: SpecctlError | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "host": self.host,
            "server": self.server,
            "profile": self.profile,
            "mode": None if self.mode is None else str(self.mode),
            "up_s": self.up_s,
            "log_lines": self.log_lines,
            **self.report.as_wire(),
            "error": None if self.error is None else dict(self.error.as_json()),
        }


def examine(selected: Sequence[Pair], wish: Wish, *, show: Show | None = None) -> tuple[Examined, ...]:
    """Examine every server; one that cannot be reached has its error in place of a report."""

    def one(contact: Contact, server: Server) -> Examined:
        found = doctor_gather.subject(contact, server)
        if wish.live:
            refuse_while_acting(found)
        evidence = doctor_gather.gather(found, wish)
        if wish.live and evidence.configuration.serving:
            on_progress = None if show is None else lambda progress: show(contact.host.name, progress)
            evidence = _probed(found, doctor_live.loaded(found, evidence, show=on_progress))
        return _examined(evidence, server)

    results = []
    for (host, name), result in each(selected, one).items():
        if isinstance(result, Examined):
            results.append(result)
        elif isinstance(result, SpecctlError):
            results.append(Examined(host=host, server=name, error=result))
    return tuple(results)


def refuse_while_acting(found: Subject) -> None:
    """Refuse to load a server that somebody acts on: figures of one that changes mean nothing."""
    lease = found.facts.lease
    if lease is not None:
        why = f" ({lease.reason})" if lease.reason else ""
        raise LockHeldError(
            f"{lease.owner} acts on server {found.server.name}{why}: a load would mean nothing now",
            hint="leave --live out, or wait: specctl lock status shows who holds it",
            host=found.contact.host.name,
        )


def _probed(found: Subject, evidence: Evidence) -> Evidence:
    """Return the evidence with what the target says of the engine's own tokens; without it where the engine fails to answer."""
    if found.client is None:
        return evidence
    try:
        return doctor_probe.probed(found.client, evidence)
    except ConnectError:
        raise
    except SpecctlError:
        return evidence


def _examined(evidence: Evidence, server: Server) -> Examined:
    last = evidence.observations[-1].at_s if evidence.observations else None
    return Examined(
        host=evidence.host or "",
        server=server.name,
        profile=server.profile.name,
        mode=evidence.mode,
        up_s=None if last is None or evidence.started_s is None else last - evidence.started_s,
        log_lines=None if evidence.log is None else evidence.log.lines,
        report=judge(evidence),
    )
