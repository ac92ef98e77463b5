"""What acts on one server, made from its note: the engine's own way, the way by restart, the door that requests come through."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from specctl.fleet.types import ServiceManager
from specctl.ops import engine_live
from specctl.rollout import launch, unit
from specctl_agent import request as requests
from specctl_agent.acting import Acting, lease_holder
from specctl_agent.actuators import Doorkeeper, ask
from specctl_agent.actuators.gateway import RouterGateway
from specctl_agent.actuators.hooks import HookDoor, OpenDoor
from specctl_agent.actuators.live import Live
from specctl_agent.actuators.restart import Restart, Spot
from specctl_agent.actuators.witness import EngineWitness
from specctl_agent.eyes import endpoint
from specctl_agent.intent import Intents
from specctl_agent.places import CURRENT, Place
from specctl_agent.samplers.engine import EngineMetrics
from specctl_agent.samplers.journal_source import FileSource, JournalSource, LogSource


def open_hands(place: Place, *, state: Path, intents: Intents, boot: str, stopping: threading.Event) -> Acting:
    """Make what acts on a server as it is deployed now; a deploy that changes it needs new hands. Nothing is asked yet."""
    server = place.note.deployed(place.release or "")
    note = replace(place.note, server=server)
    here = ask.Here.on(note.as_host())
    engine = engine_live.Engine(here, server)
    spot = Spot(
        note=note,
        folder=place.agent_folder,
        requests=state / requests.FOLDER,
        release=lambda: current_release(place.folder),
        boot=boot,
    )
    door = door_of(place, here, stopping)
    metrics = EngineMetrics(
        endpoint(place), launch.engines()[server.profile.engine].metrics, name=f"{place.name}/proof"
    )
    return Acting(
        spot=spot,
        live=Live(server, engine, EngineWitness(lambda: _log_of(place), metrics), stopping),
        restart=Restart(spot, engine, door, stopping, patient=not isinstance(door, OpenDoor)),
        intents=intents,
        stopping=stopping,
        holder=lambda: lease_holder(place.folder),
    )


def door_of(place: Place, here: ask.Here, stopping: threading.Event) -> Doorkeeper:
    """Return what takes requests off a server: its gateway, its hooks, or nothing."""
    server, agent = place.note.server, place.note.server.agent
    if agent.gateway is not None:
        return RouterGateway(
            agent.gateway, here, stopping, engine_key=server.secrets.get("api_key"), last_ok=agent.outage_ok
        )
    if agent.hooks is not None:
        return HookDoor(agent.hooks, server.name)
    return OpenDoor()


def current_release(folder: Path) -> str | None:
    """Return the release that a start would run; None where nothing is deployed."""
    try:
        parts = (folder / CURRENT).readlink().parts
    except OSError:
        return None
    return parts[1] if len(parts) == 3 else None


def _log_of(place: Place) -> LogSource:
    if place.note.host.manager is ServiceManager.SUPERVISOR:
        return FileSource(place.folder / "log")
    return JournalSource(unit.unit_name(place.name))
