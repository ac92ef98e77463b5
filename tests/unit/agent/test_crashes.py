"""Kill -9 at every step of a switch: the next start resumes or reverts, requests come again, and nothing is done twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from specctl.fleet.types import Hooks
from specctl_agent import request as requests
from tests import agentstub
from tests.agentstub import Performer, Stub, steps_of, wait_for_step
from tests.agentworld import DDTREE, DFLASH
from tests.labserver import wait_until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
HOOK = '#!/bin/sh\necho "$1" >> {diary}\nwhile [ -e {gate}-"$1" ]; do sleep 0.02; done\n'


@dataclass(slots=True)
class World:
    """A server, its engine, and an agent that can be started, held at a hook, killed, and started again."""

    engine: Stub
    servers: Path
    state: Path
    folder: Path
    diary: Path
    gate: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the agent in a process of its own."""
        argv = [sys.executable, "-m", "tests.agentonce", str(self.servers), str(self.state), *words]
        path = f"{ROOT}:{ROOT / 'agents'}"
        return subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
        )

    def mend(self, running: str) -> list[str]:
        """Start the agent again and return what it reports."""
        process = self.start("mend", running)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        return said.splitlines()

    def hold(self, hook: str) -> Path:
        """Let a hook wait once it has begun; removing the path lets it go on."""
        path = self.gate.with_name(f"{self.gate.name}-{hook}")
        path.touch()
        return path

    @property
    def hooks(self) -> list[str]:
        """Return which hooks began, in order."""
        return self.diary.read_text().split() if self.diary.exists() else []


def kill(process: subprocess.Popen[str]) -> None:
    """Kill it as a power cut would."""
    process.kill()
    process.communicate(timeout=10)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A server behind hooks that a test can hold."""
    diary, gate, script = tmp_path / "diary", tmp_path / "gate", tmp_path / "hook"
    script.write_text(HOOK.format(diary=diary, gate=gate))
    script.chmod(0o755)
    state, servers = tmp_path / "state", tmp_path / "servers"
    state.mkdir()
    hooks = Hooks(pre_drain=(str(script), "off"), post_ready=(str(script), "on"), limit_s=20.0)
    with agentstub.engine() as engine:
        folder = agentstub.deployed(servers, engine.port, hooks=hooks, outage_ok=False)
        yield World(engine, servers, state, folder, diary, gate)
        for path in tmp_path.glob("gate-*"):
            path.unlink()


def test_killed_while_requests_are_taken_off(world: World) -> None:
    """The hook had begun: it is undone, and the restart was never asked for."""
    gate = world.hold("off")
    process = world.start("restart")
    wait_until(lambda: world.hooks == ["off"], what="the hook")
    kill(process)
    gate.unlink()
    assert world.mend(str(DDTREE)) == [f"refused {DDTREE} the agent was restarted"]
    assert world.hooks == ["off", "on"]
    assert steps_of(world.state) == ["begun", "taken off", "back", "ended"]
    assert world.mend(str(DDTREE)) == []


def test_killed_while_it_drains(world: World) -> None:
    """Requests were still running: they come again to a server that was never touched."""
    world.engine.running = 1
    process = world.start("restart")
    wait_for_step(world.state, "taken off")
    wait_until(lambda: world.hooks == ["off"], what="the hook")
    kill(process)
    assert world.mend(str(DDTREE)) == [f"refused {DDTREE} the agent was restarted"]
    assert world.hooks == ["off", "on"]


def test_killed_while_the_performer_is_at_work(world: World) -> None:
    """The performer goes on without the agent; the next start waits for its answer, and opens the door once."""
    process = world.start("restart")
    wait_for_step(world.state, "requested")
    wait_until(lambda: bool(list((world.state / requests.FOLDER).glob("*.json"))), what="the request")
    kill(process)
    performer = Performer(world.folder, world.state, agentstub.done)
    with performer.at_work():
        said = world.mend(str(DDTREE))
    assert said == [f"done {DFLASH} proven: a tree line"]
    assert (len(performer.asked), world.hooks) == (1, ["off", "on"])
    assert steps_of(world.state) == ["begun", "taken off", "requested", "back", "ended"]


def test_killed_before_the_request_was_there(world: World) -> None:
    """The step was written down and the request was not: it is not waited for, and not made."""
    process = world.start("restart")
    wait_for_step(world.state, "requested")
    wait_until(lambda: bool(list((world.state / requests.FOLDER).glob("*.json"))), what="the request")
    kill(process)
    for path in (world.state / requests.FOLDER).iterdir():
        path.unlink()
    assert world.mend(str(DDTREE)) == [f"refused {DDTREE} the agent was restarted"]
    assert world.hooks == ["off", "on"]


def test_killed_while_requests_are_brought_back(world: World) -> None:
    """The act was done, and the hook that opens the door had begun: it runs again, to its end."""
    gate = world.hold("on")
    performer = Performer(world.folder, world.state, agentstub.done)
    with performer.at_work():
        process = world.start("restart")
        wait_until(lambda: world.hooks == ["off", "on"], what="the hook")
        kill(process)
    gate.unlink()
    assert world.mend(str(DFLASH)) == [f"done {DFLASH} proven: a tree line"]
    assert (len(performer.asked), world.hooks) == (1, ["off", "on", "on"])


@pytest.mark.parametrize(
    ("took", "running", "said"),
    [(True, DFLASH, "done"), (False, DDTREE, "refused")],
)
def test_killed_while_the_engine_is_told(world: World, took: bool, running: object, said: str) -> None:
    """The engine took it or did not: its own word says which, and the journal ends with that."""

    def takes(changes: Mapping[str, object]) -> list[bool]:
        """Take what is there already, for it is only asked; hold what is new."""
        if changes["speculative_algorithm"] == "DDTREE":
            return [True]
        world.engine.held.clear()
        return [took]

    world.engine.takes = takes
    process = world.start("live")
    wait_until(lambda: len(world.engine.told) == 2, what="the engine is told")
    kill(process)
    world.engine.held.set()
    (line,) = world.mend(str(running))
    assert line.startswith(f"{said} {running} ")
    assert world.mend(str(running)) == []
    noted = list((world.state / requests.FOLDER).glob("*.json")) if took else []
    assert len(noted) == (1 if took else 0)


def test_a_reboot_ends_what_was_under_way(world: World) -> None:
    """After a reboot nothing is asked again: the link says what runs, and requests come again once it serves."""
    world.engine.running = 1
    process = world.start("restart")
    wait_until(lambda: world.hooks == ["off"], what="the hook")
    kill(process)
    journal = world.state / "intents.jsonl"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    journal.write_text(journal.read_text().replace(boot, "another-boot"))
    world.engine.up = False
    assert world.mend(str(DDTREE)) == ["interrupted None the server does not serve yet"]
    assert world.hooks == ["off"]
    world.engine.up = True
    assert world.mend(str(DDTREE)) == [f"refused {DDTREE} the host was restarted meanwhile"]
    assert world.hooks == ["off", "on"]
