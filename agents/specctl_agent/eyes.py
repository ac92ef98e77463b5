"""The samplers that look at one server's engine, made for where its current release answers, and ended with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specctl.control.sample.engine import EngineInfo, EngineLines, Look, Page
from specctl.control.sample.engine_lines import reader
from specctl.fleet.types import ServiceManager
from specctl.rollout import launch, unit
from specctl_agent.places import Place
from specctl_agent.samplers.engine import Endpoint, EngineInfos, EngineLoads, EngineMetrics
from specctl_agent.samplers.journal import EngineLog
from specctl_agent.samplers.journal_source import FileSource, JournalSource, LogSource
from specctl_agent.samplers.runner import Slot

LOOPBACK = "127.0.0.1"
ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104  # what is listened on, and not by us


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """The slots of one server."""

    loads: Slot[Look]
    pages: Slot[Page]
    infos: Slot[EngineInfo]
    lines: Slot[EngineLines]

    def each(self) -> Iterator[Slot[object]]:
        """Yield every slot."""
        yield self.loads
        yield self.pages
        yield self.infos
        yield self.lines

    def start(self) -> None:
        """Start looking."""
        for slot in self.each():
            slot.start()

    def stop(self) -> None:
        """Ask all of them to end after their present looks."""
        for slot in self.each():
            slot.stop()


def endpoint(place: Place) -> Endpoint:
    """Return where the current release answers, as this host reaches it."""
    server = place.note.deployed(place.release or "")
    key = server.secrets.get("api_key")
    address = LOOPBACK if server.bind in ANYWHERE else server.bind
    return Endpoint(host=address, port=server.port, key_file=None if key is None else Path(key.locator))


def open_eyes(place: Place) -> Eyes:
    """Make the samplers of a server; nothing is asked before they are started."""
    where, server = endpoint(place), place.note.server
    engine = launch.engines()[server.profile.engine]
    metrics, name = engine.metrics, server.name
    reading = reader(engine.log, server.profile.tree_line)
    source = _source(place)
    return Eyes(
        loads=Slot(lambda: EngineLoads(where, metrics, name=f"{name}/engine_loads")),
        pages=Slot(lambda: EngineMetrics(where, metrics, name=f"{name}/engine_metrics")),
        infos=Slot(lambda: EngineInfos(where, metrics, name=f"{name}/engine_info")),
        lines=Slot(lambda: EngineLog(source, reading, name=f"{name}/engine_log")),
    )


def _source(place: Place) -> LogSource:
    if place.note.host.manager is ServiceManager.SUPERVISOR:
        return FileSource(place.folder / "log")
    return JournalSource(unit.unit_name(place.name))
