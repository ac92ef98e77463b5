"""What the agent on a host answered to `snapshot`, laid over a sight; pure. Of an agent of wire version 1.0 less is known."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace

from specctl.control import sight_gpus
from specctl.control.mode import Mode
from specctl.control.mode import parse as parse_mode
from specctl.control.sample.engine import Activity
from specctl.control.sight import AgentSight, Decided, Sight, Source, State, Told
from specctl.control.sight_engine import Figures
from specctl.control.sight_facts import with_figures
from specctl.control.sight_past import Past
from specctl.rollout import reading

SMOOTH_POINTS = 10
"""Tokens come in lumps, each 15 steps: a point of the history says little alone (agent's watch.NOW_S)."""

# What an engine does, as the agent saw it, where the unit runs and its port is its own.
_STATES: Mapping[str, State] = {
    Activity.ACTIVE.value: State.READY,
    Activity.IDLE.value: State.READY,
    Activity.UNREADY.value: State.NOT_READY,
    Activity.STALE.value: State.NOT_READY,
    Activity.FROZEN.value: State.FROZEN,
}
_SETTLED = frozenset({State.READY.value, State.NOT_READY.value, State.FROZEN.value})


def knows(answer: Mapping[str, object], server: str) -> bool:
    """Claim that the agent has seen this server's engine: what it says of it can stand for the engine's own words."""
    row = _row(answer, server)
    return reading.mapping(row.get("engine")) != {} and reading.number(row.get("engine_age_s")) is not None


def laid_over(sight: Sight, answer: Mapping[str, object], gpus: Sequence[int]) -> Sight:
    """Return the sight with the agent's words: its decisions always, figures and state where it knows the server's engine."""
    nvml = reading.mapping(answer.get("nvml"))
    found = replace(
        sight,
        agent=_agent(answer, sight.server),
        gpus=sight_gpus.of_agent(nvml, reading.number(answer.get("nvml_age_s")), gpus),
        gpu_trouble=sight_gpus.trouble_of(nvml),
    )
    return _with_engine(found, _row(answer, sight.server)) if knows(answer, sight.server) else found


def _with_engine(sight: Sight, row: Mapping[str, object]) -> Sight:
    activity = reading.text(reading.mapping(row.get("engine")).get("activity")) or ""
    state = _STATES.get(activity) if sight.state in _SETTLED else None
    status = reading.mapping(row.get("status"))
    live = None if sight.live is None or _behind(status, sight) else _mode(status.get("mode"))
    found = replace(
        sight,
        state=sight.state if state is None else state.value,
        ready=None if state is None else state is State.READY,
        live=live or sight.live,
        proven=sight.proven if live is None or _is_same(live, sight.live) else None,
    )
    return with_figures(found, _figures(row))


def _behind(status: Mapping[str, object], sight: Sight) -> bool:
    """Whether a record says that the engine was told a mode after the one that the agent has read of."""
    if sight.live_by is None:
        return False
    told, recorded = _moment(status.get("told_at")), _moment(sight.live_at)
    return recorded is not None and (told is None or told < recorded)


def _is_same(live: Mode, recorded: Mode | None) -> bool:
    """Whether the agent names the mode that a record names: the engine's words, which are the agent's, are fuller."""
    return recorded is not None and live.algo == recorded.algo and set(recorded.knobs) <= set(live.knobs)


def _moment(text: object) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _figures(row: Mapping[str, object]) -> Figures:
    sample, now = reading.mapping(row.get("engine")), reading.mapping(reading.mapping(row.get("status")).get("now"))
    look_s, age_s = reading.number(row.get("engine_age_s")), reading.number(now.get("age_s"))
    if age_s is None and sample.get("activity") != Activity.FROZEN.value:
        age_s = look_s
    running = reading.whole(now.get("running") if now else sample.get("running"))
    waiting = reading.whole(now.get("waiting") if now else sample.get("waiting"))
    told = {name: reading.number(now.get(name)) for name in ("tokens_per_s", "accept_length", "kv_ratio")}
    figures = {
        name: None if value is None else Told(value=value, age_s=age_s, source=Source.AGENT)
        for name, value in told.items()
    }
    return Figures(
        running=None if running is None else Told(value=running, age_s=age_s, source=Source.AGENT),
        waiting=None if waiting is None else Told(value=waiting, age_s=age_s, source=Source.AGENT),
        **figures,
    )


def _agent(answer: Mapping[str, object], server: str) -> AgentSight:
    status = reading.mapping(_row(answer, server).get("status"))
    decision = reading.mapping(status.get("decision"))
    text = reading.text(decision.get("text"))
    return AgentSight(
        conduct=reading.text(status.get("conduct")),
        version=reading.text(answer.get("version")),
        decision=None
        if text is None
        else Decided(
            text=text,
            rule=reading.text(decision.get("rule")),
            reason=reading.text(decision.get("reason")),
            at=reading.text(decision.get("at")),
            for_s=reading.number(decision.get("for_s")),
        ),
        acting=reading.text(status.get("acting")),
        pinned=reading.text(status.get("pinned")),
        pin_left_s=reading.number(status.get("pin_left_s")),
        held=reading.text(status.get("held")),
        frozen=reading.text(status.get("frozen")),
        findings=reading.texts(status.get("findings")),
        troubles={str(name): str(words) for name, words in reading.mapping(answer.get("troubles")).items()},
    )


def past(answer: Mapping[str, object]) -> Past | None:
    """Return what an agent answered to `history` as lines; tokens and accept length are means over ten points."""
    period_s, rows = reading.number(answer.get("period_s")), answer.get("points")
    if period_s is None or not isinstance(rows, list):
        return None
    points = [row if isinstance(row, list) else [] for row in rows]
    columns = [[reading.number(row[place]) if len(row) > place else None for row in points] for place in range(4)]
    return Past(
        period_s=period_s,
        running=tuple(columns[0]),
        waiting=tuple(columns[1]),
        tokens_per_s=_smooth(columns[2]),
        accept_length=_smooth(columns[3]),
    )


def _smooth(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the mean of the known ones among each point and those before it; a point that is not known stays so."""
    found: list[float | None] = []
    for place, value in enumerate(values):
        near = [one for one in values[max(0, place + 1 - SMOOTH_POINTS) : place + 1] if one is not None]
        found.append(None if value is None else sum(near) / len(near))
    return tuple(found)


def _row(answer: Mapping[str, object], server: str) -> Mapping[str, object]:
    return reading.mapping(reading.mapping(answer.get("servers")).get(server))


def _mode(text: object) -> Mode | None:
    try:
        return None if not isinstance(text, str) else parse_mode(text)
    except ValueError:
        return None
