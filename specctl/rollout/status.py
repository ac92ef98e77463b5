"""The status of one server in one row, from facts and what the engine answered; pure. Unknown is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.rollout import reading
from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import ServerFacts
from specctl.rollout.guarded import Guard
from specctl.rollout.observation import Port
from specctl.rollout.record import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswers:
    """What the engine said: status of /ready, running and waiting requests, tokens a second, accept length since the start."""

    ready: int | None = None
    running: int | None = None
    waiting: int | None = None
    tokens_per_s: float | None = None
    accept_length: float | None = None
    age_s: float | None = None

    @classmethod
    def from_loads(cls, ready: int | None, body: Mapping[str, object]) -> EngineAnswers:
        """Sum the rows of /v1/loads; `age_s` is the age of its oldest inner timestamp against the outer one."""
        rows = body.get("loads")
        loads = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        speculative = [row.get("speculative") for row in loads]
        accepts = [reading.number(part.get("accept_length")) for part in speculative if isinstance(part, Mapping)]
        known = [value for value in accepts if value is not None and value > 0]
        outer, inner = _moment(body.get("timestamp")), [_moment(row.get("timestamp")) for row in loads]
        ages = [outer - value for value in inner if value is not None] if outer is not None else []
        return cls(
            ready=ready,
            running=_sum(loads, "num_running_reqs"),
            waiting=_sum(loads, "num_waiting_reqs"),
            tokens_per_s=_positive(sum(reading.number(row.get("gen_throughput")) or 0.0 for row in loads))
            if loads
            else None,
            accept_length=sum(known) / len(known) if known else None,
            age_s=max(0.0, *ages) if ages else None,
        )


def _sum(rows: list[Mapping[str, object]], name: str) -> int | None:
    values = [reading.whole(row.get(name)) for row in rows]
    counts = [value for value in values if value is not None and value >= 0]
    return sum(counts) if counts and len(counts) == len(values) else None


def _positive(value: float) -> float | None:
    """Return None for a zero: without --enable-metrics the engine says 0 and means that it does not know."""
    return value if value > 0 else None


def _moment(value: object) -> float | None:
    """Return a timestamp in seconds: a number, or ISO 8601 text."""
    if isinstance(value, str):
        from datetime import datetime

        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError):
            return None
    return reading.number(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One server in the status table; `state` in words, `note` what a person should know beside it."""

    host: str
    server: str
    state: str
    algo: str | None = None
    knobs: Mapping[str, int] = field(default_factory=dict)
    release: str | None = None
    proven: bool | None = None
    engine: EngineAnswers = field(default_factory=EngineAnswers)
    note: str | None = None
    guard: Guard | None = None
    last_act: str | None = None
    last_at: str | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the row (docs/json.md)."""
        return {
            "host": self.host,
            "server": self.server,
            "state": self.state,
            "algo": self.algo,
            "knobs": dict(self.knobs),
            "release": self.release,
            "proven": self.proven,
            "ready": self.engine.ready == 200,
            "running": self.engine.running,
            "waiting": self.engine.waiting,
            "tokens_per_s": self.engine.tokens_per_s,
            "accept_length": self.engine.accept_length,
            "age_s": self.engine.age_s,
            "note": self.note,
            "guard": self.guard.as_wire() if self.guard else None,
            "last_act": self.last_act,
            "last_at": self.last_at,
        }


def proof_of(facts: ServerFacts) -> bool | None:
    """Say whether the newest record that put the current release into service holds a proof; None without such a record."""
    if facts.current is None:
        return None
    pair = [facts.current.id, facts.current.algo]
    for row in reversed(facts.records):
        if row.get("serving") == pair:
            return row.get("proof") == "proven"
    return None


def state_of(facts: ServerFacts, engine: EngineAnswers) -> str:
    """Say the server's state in a word: ready, loading, not ready, stopped, failed, not deployed, port taken."""
    if facts.current is None:
        return "not deployed"
    active = facts.unit.active
    if active == "failed":
        status = facts.unit.exit_status
        return "failed" if status is None else f"failed ({status})"
    if active in (None, "inactive"):
        return "stopped" if active else "unknown"
    if active != "active":
        return active
    if facts.port is Port.FOREIGN:
        return "port taken"
    if facts.port is Port.REFUSED:
        return "loading"
    return "ready" if engine.ready == 200 else "not ready"


def row(host: str, facts: ServerFacts, engine: EngineAnswers) -> Row:
    """Return the server's row."""
    last = facts.records[-1] if facts.records else {}
    notes = [*facts.drift, *facts.warnings]
    if facts.lease is not None:
        notes.insert(0, f"locked by {facts.lease.owner}" + (f" ({facts.lease.reason})" if facts.lease.reason else ""))
    if facts.guard is not None:
        notes.insert(0, facts.guard.words())
    if last.get("result") in (Result.STOPPED.value, Result.FAILED.value):
        notes.append(f"last {last.get('act')}: {last.get('result')}")
    algo, knobs = (facts.current.algo, facts.current.knobs()) if facts.current else (None, {})
    moved = live_move(facts)
    if moved is not None:
        notes.append(f"set live by {moved.who}; a start would run {algo}")
        algo, knobs = moved.algo, moved.knobs
    return Row(
        host=host,
        server=facts.name,
        state=state_of(facts, engine),
        algo=algo,
        knobs=knobs,
        release=facts.current.id if facts.current else None,
        proven=proof_of(facts) if moved is None else moved.proven,
        engine=engine,
        note="; ".join(notes) or None,
        guard=facts.guard,
        last_act=str(last["act"]) if "act" in last else None,
        last_at=str(last["at"]) if "at" in last else None,
    )
