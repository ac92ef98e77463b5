"""A sight from what the inventory says and from how a server stands on its host, then from the engine's words; pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace

from specctl.control.mode import Mode
from specctl.control.sight import LastAct, Sight, State, mode_of
from specctl.control.sight_engine import EngineSight, Figures
from specctl.fleet.types import AgentMode, Host, Server
from specctl.rollout import reading
from specctl.rollout.agent_moves import WHO, LiveMove, as_agent_left, live_move
from specctl.rollout.facts import ServerFacts
from specctl.rollout.observation import Port
from specctl.rollout.record import Result


def blank(host: Host, server: Server) -> Sight:
    """Return what is known before anybody has looked: what the inventory says."""
    return Sight(
        host=host.name,
        server=server.name,
        state=State.UNKNOWN.value,
        groups=host.groups,
        reason="not looked at yet",
        desired=mode_of(server.algo, server.knobs.get(server.algo, {})),
        owned=_owned(server, server.algo),
    )


def standing(host: Host, server: Server, facts: ServerFacts, wall_s: float | None) -> Sight:
    """Return how a server stands by its facts, taken at `wall_s` (the host's Unix time); the state is that of a silent engine."""
    wanted = as_agent_left(server, facts)
    current = facts.current
    deployed = mode_of(current.algo, current.knobs()) if current else None
    moved = live_move(facts)
    live, proven = _live(facts, deployed, moved)
    found = blank(host, server)
    return replace(
        found,
        state=state_of(facts),
        reason=facts.trouble,
        hint=facts.remedy(host.name),
        desired=mode_of(wanted.algo, wanted.knobs.get(wanted.algo, {})),
        deployed=deployed,
        live=live,
        live_by=None if moved is None else moved.who,
        live_at=None if moved is None else moved.at,
        release=current.id if current else None,
        proven=proven,
        owned=_owned(server, (live or deployed or mode_of(server.algo, {})).algo),
        drift=facts.drift,
        warnings=tuple(warning for warning in facts.warnings if warning != facts.unreadable),
        lease=facts.lease,
        guard=facts.guard,
        last=_last(facts, wall_s),
        age_s=0.0 if facts.trouble is None else None,
    )


def with_figures(sight: Sight, figures: Figures) -> Sight:
    """Return the sight with these figures of the engine."""
    return replace(
        sight,
        running=figures.running,
        waiting=figures.waiting,
        tokens_per_s=figures.tokens_per_s,
        accept_length=figures.accept_length,
        kv_ratio=figures.kv_ratio,
    )


def with_engine(sight: Sight, facts: ServerFacts, engine: EngineSight, figures: Figures) -> Sight:
    """Return the sight with what the engine itself answered."""
    state = state_of(facts, ready=engine.ready == 200, frozen=engine.frozen)
    return with_figures(replace(sight, state=state, ready=engine.ready == 200), figures)


def state_of(facts: ServerFacts, *, ready: bool = False, frozen: bool = False) -> str:
    """Say the server's state in a word; `frozen`: the engine answers, and its scheduler does not."""
    if facts.current is None:
        return State.NOT_DEPLOYED.value if facts.unreadable is None else State.UNKNOWN.value
    active = facts.unit.active
    if active == "failed":
        status = facts.unit.exit_status
        return State.FAILED.value if status is None else f"{State.FAILED.value} ({status})"
    if active in (None, "inactive"):
        return State.STOPPED.value if active else State.UNKNOWN.value
    if active != "active":
        return active
    if facts.port is Port.FOREIGN:
        return State.PORT_TAKEN.value
    if facts.port is Port.REFUSED:
        return State.LOADING.value
    if frozen:
        return State.FROZEN.value
    return State.READY.value if ready else State.NOT_READY.value


def proof_of(facts: ServerFacts) -> bool | None:
    """Say whether the newest record that put the current release into service holds a proof; None without such a record.

    A start that nobody waited for holds none, whatever an earlier one of the same release proved.
    """
    if facts.current is None:
        return None
    pair = [facts.current.id, facts.current.algo]
    for row in reversed(facts.records):
        if row.get("result") == Result.FAILED.value:
            continue  # It changed nothing.
        if row.get("result") == Result.UNGATED.value and [row.get("release"), row.get("algo")] == pair:
            return False
        if row.get("serving") == pair:
            return row.get("proof") == "proven"
    return None


def _live(facts: ServerFacts, deployed: Mode | None, moved: LiveMove | None) -> tuple[Mode | None, bool | None]:
    """Return what runs (nothing without an active unit): what the running engine was told, or was started with; and its proof."""
    if moved is not None:
        return mode_of(moved.algo, moved.knobs), moved.proven
    runs = facts.unit.active == "active" and facts.port is not Port.FOREIGN
    return (deployed if runs else None), proof_of(facts)


def _owned(server: Server, algo: str) -> tuple[str, ...]:
    """Return what the agent may choose by itself: the algo, where it has a choice, and the knobs that the inventory gives it."""
    agent = server.agent
    if agent.mode is not AgentMode.ACT:
        return ()
    chooses = ("algo",) if len(set(agent.algos) | {server.algo}) > 1 and agent.algos else ()
    return (*chooses, *sorted(agent.knobs.get(algo, {})))


def _last(facts: ServerFacts, wall_s: float | None) -> LastAct | None:
    row: Mapping[str, object] = facts.records[-1] if facts.records else {}
    act, at = reading.text(row.get("act")), reading.text(row.get("at"))
    if act is None:
        return None
    moment = _moment(at)
    age_s = None if moment is None or wall_s is None else max(0.0, wall_s - moment)
    who = reading.text(row.get("who"))
    result = reading.text(row.get("result"))
    return LastAct(act=act, at=at, age_s=age_s, who="agent" if who == WHO else who, result=result)


def _moment(text: str | None) -> float | None:
    try:
        return None if text is None else dt.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None
