"""A host in a folder: a lab server on this machine, laid out as deploy leaves it, and the agent's loop over it, turned by hand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from specctl.control import wire
from specctl.fleet.types import AgentSettings, ServiceManager
from specctl_agent import ctl, daemon
from specctl_agent.clock import HostClock
from specctl_agent.config import Config
from specctl_agent.doors import Doors
from specctl_agent.loop import Loop
from specctl_agent.pictures import ServerPicture
from tests.agentworld import KNOBS, note_of, server_of
from tests.unit.agent.recorded import Said

WITHIN_S = 15.0
TICK_S = 0.05
API_KEY = "sk-agent-0123456789abcdef"


def lay_out(folder: Path, port: int, agent: AgentSettings, *, algo: str = "ddtree", log: Path | None = None) -> Path:
    """Write a server's folder as deploys and the agent's installer leave it; returns it."""
    home = folder / "lab"
    keys = home / "agent" / "keys"
    keys.mkdir(parents=True)
    for name in ("api_key", "admin_api_key"):
        (keys / name).write_text(API_KEY)
        (keys / name).chmod(0o640)
    server = server_of(port, keys={name: keys / name for name in ("api_key", "admin_api_key")}, agent=agent)
    note = note_of(server, folder, "1")
    note = replace(note, host=replace(note.host, manager=ServiceManager.SUPERVISOR), keys=("api_key", "admin_api_key"))
    (home / "agent" / "server.json").write_text(note.text())
    release = home / "releases" / "1"
    release.mkdir(parents=True)
    for name in KNOBS:
        (release / f"{name}.conf").write_text("")
    (home / "current").symlink_to(f"releases/1/{algo}.conf")
    if log is not None:
        (home / "log").symlink_to(log)
    return home


def calibrate(home: Path, modes: Mapping[str, Mapping[str, float]]) -> None:
    """Write the server's calibration file."""
    (home / "agent" / "calibration.json").write_text(json.dumps({"modes": modes, "max_running": 64}))


@dataclass(slots=True)
class World:
    """The agent on a folder; `turn` is one tick, and nothing happens between two."""

    folder: Path
    said: Said = field(default_factory=Said)
    stopping: threading.Event = field(default_factory=threading.Event)
    loop: Loop = field(init=False)
    doors: Doors = field(init=False)

    def __post_init__(self) -> None:
        for name in ("state", "run", "servers"):
            (self.folder / name).mkdir(exist_ok=True)
        self.loop, self.doors = daemon.assemble(self.config, HostClock(), "test", self.said, self.stopping)
        self.doors.open()
        self.loop.host_eyes.start()
        self.loop.tick()

    @property
    def config(self) -> Config:
        """Return the settings: metrics on whatever port is free."""
        return Config(
            servers=self.folder / "servers",
            address="127.0.0.1",
            port=0,
            state=self.folder / "state",
            run=self.folder / "run",
        )

    @property
    def server(self) -> ServerPicture:
        """Return the one server as the agent shows it."""
        (found,) = self.loop.picture.servers
        return found

    def until(self, claim: Callable[[], object], what: str, within_s: float = WITHIN_S) -> None:
        """Turn until a claim holds, bounded."""
        deadline = time.monotonic() + within_s
        while not claim():
            assert time.monotonic() < deadline, f"{what} did not come to pass; last {self.said.events[-5:]}"
            self.loop.tick()
            self.stopping.wait(TICK_S)

    def ask(self, request: wire.Request) -> Mapping[str, object]:
        """Put a request to the control socket, as a program on the host does."""
        found = ctl.put(request, self.config.socket)
        assert isinstance(found, dict)
        return found

    def decisions(self) -> list[Mapping[str, object]]:
        """Return the decision journal as it lies on the disk."""
        path = self.folder / "state" / "decisions.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []

    def close(self) -> None:
        """End the agent as SIGTERM does."""
        self.stopping.set()
        self.doors.close()
        self.loop.close()
