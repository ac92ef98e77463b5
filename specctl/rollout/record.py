"""A record: what one act did to one server, as it is kept on the host (the truth) and on the operator's machine (a copy)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Act(enum.Enum):
    """What somebody did to a server."""

    DEPLOY = "deploy"
    SWITCH = "switch"
    ROLLBACK = "rollback"
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    UNDEPLOY = "undeploy"


class Result(enum.Enum):
    """How it ended; a rolled back act never reads as success."""

    DONE = "done"
    ROLLED_BACK = "rolled back"
    STOPPED = "stopped: no healthy release"
    FAILED = "failed"
    UNGATED = "started, not gated"
    LOST = "connection lost"
    STARTED = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of records.jsonl; durations in seconds; None: not known or not reached.

    `release` and `algo` are what was asked for, `previous` what ran before, `serving` what runs after the act; `invocation` is
    the service manager's id of the start that was asked for, also of one that failed; `skipped_checks` are the checks that failed
    and were passed over, id to reason. `reason` is why it was done, as far as somebody said so. `live`: the running engine took
    the algo or the knobs over HTTP, and what a start would run stayed as it was; such a record has no `serving`.
    """

    act: Act
    result: Result
    server: str
    host: str
    who: str
    at: str
    release: str | None = None
    algo: str | None = None
    previous: tuple[str, str] | None = None
    serving: tuple[str, str] | None = None
    knobs: Mapping[str, int] = field(default_factory=dict)
    proof: str | None = None
    evidence: tuple[str, ...] = ()
    cause: str | None = None
    durations_s: Mapping[str, float] = field(default_factory=dict)
    load_s: float | None = None
    phases: tuple[tuple[str, float, float | None], ...] = ()
    weights_bytes: int | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    invocation: str | None = None
    specctl: str | None = None
    reason: str | None = None
    live: bool = False
    skipped_checks: Mapping[str, str] = field(default_factory=dict)

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the record (docs/json.md)."""
        return {
            "act": self.act.value,
            "result": self.result.value,
            "server": self.server,
            "host": self.host,
            "who": self.who,
            "at": self.at,
            "release": self.release,
            "algo": self.algo,
            "previous": list(self.previous) if self.previous else None,
            "serving": list(self.serving) if self.serving else None,
            "knobs": dict(self.knobs),
            "proof": self.proof,
            "evidence": list(self.evidence),
            "cause": self.cause,
            "durations_s": {name: round(value, 3) for name, value in self.durations_s.items()},
            "load_s": None if self.load_s is None else round(self.load_s, 3),
            "phases": [list(span) for span in self.phases],
            "weights_bytes": self.weights_bytes,
            "digests": dict(self.digests),
            "invocation": self.invocation,
            "specctl": self.specctl,
            "reason": self.reason,
            "live": self.live,
            "skipped_checks": dict(self.skipped_checks),
        }


# A load counts as one of this host's past loads when it came to an end that served.
LOADED = (Result.DONE.value, Result.ROLLED_BACK.value)


def past_load_rows(
    records: tuple[Mapping[str, object], ...], algo: str | None = None, limit: int = 5
) -> tuple[tuple[Mapping[str, object], float], ...]:
    """Return the latest records that hold a load, with its seconds, oldest first; those of the algo where there are any."""
    rows = [
        (row, float(value))
        for row in records
        if row.get("result") in LOADED
        and isinstance(value := row.get("load_s"), (int, float))
        and not isinstance(value, bool)
    ]
    of_algo = [(row, value) for row, value in rows if _loaded_algo(row) == algo]
    return tuple((of_algo or rows)[-limit:])


def _loaded_algo(row: Mapping[str, object]) -> object:
    """Return the algo whose load a record timed: what served in the end."""
    serving = row.get("serving")
    return serving[1] if isinstance(serving, list) and len(serving) == 2 else row.get("algo")
