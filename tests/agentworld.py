"""A lab server as the agent on its host sees it: its note, its keys in files, its log, and errands that are kept in a list."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.control.mode import Mode, mode
from specctl.fleet.profiles import Profiles
from specctl.fleet.types import (
    AgentMode,
    AgentSettings,
    Host,
    Model,
    SecretRef,
    SecretSource,
    Server,
    ServiceManager,
    Via,
)
from specctl.ops import engine_live
from specctl.rollout import launch, server_note
from specctl.rollout.server_note import ReleaseNote, ServerNote
from specctl_agent.actuators import Errand, ask
from specctl_agent.actuators.live import Live
from specctl_agent.actuators.witness import EngineWitness
from specctl_agent.samplers.engine import Endpoint, EngineMetrics
from specctl_agent.samplers.journal_source import FileSource
from tests.labserver import LabServer

KNOBS: Mapping[str, Mapping[str, int]] = {
    "none": {},
    "dflash": {"block_size": 8},
    "ddtree": {"block_size": 8, "tree_budget": 16, "topk_cap": 8},
}
NONE, DFLASH = mode("none"), mode("dflash", KNOBS["dflash"])
DDTREE = mode("ddtree", KNOBS["ddtree"])
ACT = AgentSettings(
    mode=AgentMode.ACT, algos=("none", "dflash", "ddtree"), knobs={"ddtree": {"tree_budget": (4, 32)}}, outage_ok=True
)


def tree(budget: int) -> Mode:
    """Return the tree with another budget."""
    return mode("ddtree", {**KNOBS["ddtree"], "tree_budget": budget})


def server_of(port: int, *, keys: Mapping[str, Path] | None = None, agent: AgentSettings = ACT) -> Server:
    """Return a lab server at a port of this machine; `keys` are the files that hold its keys."""
    profile = Profiles({}, BuiltInProfiles()).get("lab")
    assert profile is not None
    return Server(
        name="lab",
        profile=profile,
        target=Model(name="target", path="/models/target"),
        draft=Model(name="draft", path="/models/draft"),
        port=port,
        bind="127.0.0.1",
        algo="ddtree",
        python="/usr/bin/python3",
        knobs={algo: dict(knobs) for algo, knobs in KNOBS.items() if knobs},
        secrets={name: SecretRef(source=SecretSource.FILE, locator=str(path)) for name, path in (keys or {}).items()},
        agent=agent,
    )


def note_of(server: Server, state_dir: Path, *releases: str) -> ServerNote:
    """Return the note of a server whose releases all start alike."""
    host = Host(name="here", via=Via.LOCAL, state_dir=PurePosixPath(state_dir))
    made = server_note.make(host, server, {}, calibrated=False)
    return replace(
        made,
        releases={name: ReleaseNote(port=server.port, bind=server.bind, knobs=KNOBS) for name in releases or ("1",)},
    )


@dataclass(slots=True)
class Marks:
    """An errand's steps, kept in a list."""

    steps: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    def errand(self, name: str = "0" * 32) -> Errand:
        """Return an errand that marks here."""
        return Errand(id=name, reason="a test", mark=lambda step, facts: self.steps.append((step, facts)))

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the steps."""
        return [name for name, _ in self.steps]


def engine_of(server: Server) -> engine_live.Engine:
    """Return the engine of a server, asked over the loopback."""
    host = Host(name="here", via=Via.LOCAL, manager=ServiceManager.SYSTEMD)
    return engine_live.Engine(ask.Here.on(host), server)


def live_of(lab: LabServer, server: Server, stopping: threading.Event, *, confirm_s: float = 20.0) -> Live:
    """Return what changes a running lab server."""
    key = server.secrets.get("api_key")
    where = Endpoint(host="127.0.0.1", port=lab.port, key_file=None if key is None else Path(key.locator))
    metrics = EngineMetrics(where, launch.engines()["lab"].metrics)
    witness = EngineWitness(lambda: FileSource(lab.log_path), metrics)
    return Live(server, engine_of(server), witness, stopping, confirm_s=confirm_s, poll_s=0.1)
