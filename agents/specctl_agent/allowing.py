"""What the performer lets the agent have: nothing beyond the server's note, the releases on the host and people's orders. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from specctl.control.mode import Mode
from specctl.fleet.types import AgentMode, AgentSettings
from specctl.rollout import reading
from specctl.rollout.agent_moves import WHO
from specctl.rollout.facts import CurrentRelease, stored_knobs, stored_launch, stored_units
from specctl.rollout.plan import ChangeKind, launch_changes
from specctl.rollout.server_note import ServerNote
from specctl_agent.orders import LOST, LOST_WORDS
from specctl_agent.request import FRESH_S, Request

DAY = timedelta(days=1)


def stale(request: Request, *, boot: str, now_s: float) -> str | None:
    """Say why a request is not of now."""
    if request.boot != boot:
        return "it was asked before the host was restarted"
    age_s = now_s - request.at_s
    return None if 0 <= age_s <= FRESH_S else f"it was asked {age_s:.0f} s ago"


def forbidden(note: ServerNote, orders: Mapping[str, object]) -> str | None:
    """Say why the agent may do nothing to this server: by the inventory, or by what people told it."""
    if note.server.agent.mode is not AgentMode.ACT:
        return f"the inventory says agent.mode: {note.server.agent.mode.value}"
    servers = reading.mapping(orders.get("servers"))
    if orders.get(LOST) is not None and note.server.name not in servers:
        return f"{LOST_WORDS}: {orders.get(LOST)}"
    standing = reading.mapping(servers.get(note.server.name))
    conduct, held = reading.text(standing.get("conduct")), reading.text(standing.get("held"))
    if conduct not in (None, AgentMode.ACT.value):
        return f"the agent was told: {conduct}"
    return None if held is None else f"the agent is held: {held}"


def too_many(agent: AgentSettings, records: Sequence[Mapping[str, object]], now: datetime) -> str | None:
    """Say so where the day's switches by restart are used up, by the host's own records."""
    made = [
        row
        for row in records
        if row.get("who") == WHO and row.get("live") is not True and (at := _moment(row.get("at"))) and now - at < DAY
    ]
    if len(made) < agent.switches_a_day:
        return None
    return f"{len(made)} restarts within 24 hours, and the inventory allows {agent.switches_a_day}"


def _moment(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def unfit(note: ServerNote, current: CurrentRelease, request: Request, manifest: Mapping[str, object]) -> str | None:
    """Say why a release may not be started for the agent: it must be what runs, but for what the agent owns."""
    agent, algo = note.server.agent, request.algo
    if not agent.drains:
        return "nothing takes requests off this server, and the inventory accepts no outage"
    if algo not in stored_units(manifest):
        return f"release {request.release} cannot run {algo}"
    if algo != current.algo and algo not in agent.algos:
        return f"{algo} is not among agent.algos"
    if request.release == current.id:
        return None
    return _other_release(note, current, algo, manifest)


def _other_release(note: ServerNote, current: CurrentRelease, algo: str, manifest: Mapping[str, object]) -> str | None:
    """Compare another release with the present one: only knobs that the agent owns may differ, within their bounds."""
    bounds = note.server.agent.knobs.get(algo, {})
    profile = note.server.profile.algos.get(algo)
    flags = {profile.knobs[name] for name in bounds if name in profile.knobs} if profile else set()
    names = {profile.knob_env[name] for name in bounds if name in profile.knob_env} if profile else set()
    changes, _, _ = launch_changes(stored_launch(current.manifest, algo), stored_launch(manifest, algo))
    foreign = [
        change.name for change in changes if change.name not in (names if change.kind is ChangeKind.ENV else flags)
    ]
    if foreign:
        return f"it differs from what runs in {', '.join(foreign[:3])}, which the agent does not own"
    if (manifest.get("port"), manifest.get("bind")) != (current.manifest.get("port"), current.manifest.get("bind")):
        return "it answers at another address"
    knobs = stored_knobs(manifest, algo)
    return outside(note, algo, {name: value for name, value in knobs.items() if name in bounds})


def outside(note: ServerNote, algo: str, knobs: Mapping[str, int]) -> str | None:
    """Say which owned knob is out of its bounds."""
    bounds = note.server.agent.knobs.get(algo, {})
    for name, value in knobs.items():
        if name in bounds and not bounds[name][0] <= value <= bounds[name][1]:
            return f"{name} {value} is outside {bounds[name][0]} to {bounds[name][1]}"
    return None


def foreign_mode(note: ServerNote, current: CurrentRelease, mode: Mode) -> str | None:
    """Say why a live mode is none that the agent may set: an algo or a knob that it does not own."""
    agent = note.server.agent
    if mode.algo != current.algo and mode.algo not in agent.algos:
        return f"{mode.algo} is not among agent.algos"
    started = stored_knobs(current.manifest, mode.algo)
    moved = {name: value for name, value in mode.knobs if started.get(name) != value}
    loose = [name for name in moved if name not in agent.knobs.get(mode.algo, {})]
    if loose:
        return f"the agent does not own {', '.join(loose)} of {mode.algo}"
    return outside(note, mode.algo, moved)
