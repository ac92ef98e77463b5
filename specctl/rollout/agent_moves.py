"""What the agent on a host has moved, by the host's own records: its moves are no drift, and a deploy keeps them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specctl.fleet.types import AgentMode, Server
from specctl.rollout import reading
from specctl.rollout.facts import ServerFacts
from specctl.rollout.record import Result

WHO = "specctl-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMove:
    """What a running engine was told over HTTP since it was started; a start would run what the current release says."""

    algo: str
    knobs: Mapping[str, int] = field(default_factory=dict)
    who: str = WHO
    proven: bool = False
    at: str | None = None

    def __str__(self) -> str:
        return ", ".join([self.algo, *(f"{name} {value}" for name, value in self.knobs.items())])


def live_move(facts: ServerFacts) -> LiveMove | None:
    """Return the newest live change of the process that runs; None where there was none, or it was ended by a start.

    One that was told back, or that the engine did not take, changed nothing.
    """
    if facts.unit.active != "active" or facts.unit.invocation is None:
        return None
    for row in reversed(facts.records):
        if row.get("invocation") != facts.unit.invocation:
            continue
        if row.get("live") is True and row.get("result") != Result.DONE.value:
            continue
        algo = reading.text(row.get("algo"))
        if row.get("live") is not True or algo is None:
            return None
        knobs = {str(name): reading.whole(value) for name, value in reading.mapping(row.get("knobs")).items()}
        who = reading.text(row.get("who")) or WHO
        kept = {name: value for name, value in knobs.items() if value is not None}
        proven, at = row.get("proof") == "proven", reading.text(row.get("at"))
        return LiveMove(algo=algo, knobs=kept, who=who, proven=proven, at=at)
    return None


def agent_chose(facts: ServerFacts) -> bool:
    """Claim that the agent put the current release's algo into service: by the newest record that brought the pair up."""
    if facts.current is None:
        return False
    pair = [facts.current.id, facts.current.algo]
    for row in reversed(facts.records):
        if row.get("serving") == pair:
            return row.get("who") == WHO
    return False


def as_agent_left(server: Server, facts: ServerFacts) -> Server:
    """Return the server with the algo, and the owned knobs, that its agent chose last; the inventory's where it chose none.

    What somebody names on the command line is not for this function to keep or to change.
    """
    agent = server.agent
    if agent.mode is not AgentMode.ACT or facts.current is None or not agent_chose(facts):
        return server
    algo, knobs = facts.current.algo, facts.current.knobs()
    owned = {
        name: knobs[name]
        for name, (low, high) in agent.knobs.get(algo, {}).items()
        if name in knobs and low <= knobs[name] <= high
    }
    kept = server.algo if algo not in agent.algos else algo
    if not owned:
        return replace(server, algo=kept)
    return replace(server, algo=kept, knobs={**server.knobs, algo: {**server.knobs.get(algo, {}), **owned}})
