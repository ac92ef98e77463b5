"""The whole loop over a real lab server: it sees, decides, acts, tells, and bears what engines and disks do to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from specctl.control import wire
from specctl.control.mode import mode
from specctl.fleet.types import AgentMode
from specctl_agent import metrics
from tests import labmodels
from tests.agentworld import ACT, KNOBS
from tests.labserver import LabServer
from tests.unit.agent.hostworld import API_KEY, World, calibrate, lay_out

pytestmark = pytest.mark.slow

TREE = ("--speculative-algorithm", "DDTREE")
NOW = replace(ACT, min_dwell_s=0.0, knobs={})
CHAIN_WINS = {
    "none": {"1": 10.0, "64": 100.0},
    "dflash": {"1": 100.0, "64": 1000.0},
    "ddtree": {"1": 50.0, "64": 500.0},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A lab server that begins with a tree; tests leave it so."""
    folders = labmodels.write(tmp_path_factory.mktemp("models"))
    arguments = (*TREE, "--enable-metrics", "--api-key", API_KEY, "--admin-api-key", API_KEY)
    with LabServer(folders, tmp_path_factory.mktemp("lab"), *arguments) as started:
        yield started.ready()


@pytest.fixture
def home(tmp_path: Path, lab: LabServer) -> Path:
    """The server's folder."""
    return lay_out(tmp_path / "servers", lab.port, NOW, log=lab.log_path)


@pytest.fixture
def chain_wins(home: Path) -> None:
    """Lay a calibration beside the server by which a chain is twice as good as the tree that runs."""
    calibrate(home, CHAIN_WINS)


@pytest.fixture
def world(tmp_path: Path, home: Path) -> Iterator[World]:
    """The agent over it."""
    made = World(tmp_path)
    yield made
    made.close()


class Busy:
    """Requests without end, until it is left."""

    def __init__(self, lab: LabServer, streams: int = 2) -> None:
        self._lab = lab
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(streams)
        self._streams: list[Future[int]] = []
        self._count = streams

    def __enter__(self) -> Self:
        self._streams = [self._pool.submit(self._stream) for _ in range(self._count)]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert all(stream.result(60) > 0 for stream in self._streams)
        self._pool.shutdown()

    def _stream(self) -> int:
        done = 0
        while not self._over.is_set():
            content = {
                "text": "hello",
                "sampling_params": {"temperature": 0, "max_new_tokens": 200, "ignore_eos": True},
            }
            answer = self._lab.post("/generate", content, Authorization=f"Bearer {API_KEY}")
            assert answer.status_code == 200
            done += 1
        return done


def claimed(lab: LabServer) -> str:
    """Return the algorithm that the engine says it runs."""
    info = lab.get("/server_info", Authorization=f"Bearer {API_KEY}").json()
    return str(info["internal_states"][0]["speculative_algorithm"])


@pytest.fixture
def tree_again(lab: LabServer) -> Iterator[None]:
    """Leave the engine with the tree that it began with."""
    yield
    state = {
        "speculative_algorithm": "DDTREE",
        **{f"speculative_ddtree_{name}": value for name, value in (("budget", 16), ("topk_cap", 8))},
    }
    lab.post("/set_internal_state", {"server_args": state}, Authorization=f"Bearer {API_KEY}")


def test_without_a_model_it_holds(world: World, lab: LabServer) -> None:
    """A server that was deployed is found, watched and told about; under load nothing is decided but to calibrate first."""
    world.until(
        lambda: world.decisions() and world.server.sample and world.server.sample.running == 0, "an idle engine"
    )
    assert world.server.mode == mode("ddtree", KNOBS["ddtree"])
    assert world.said.of("server-found") == [{"server": "lab", "release": "1", "algo": "ddtree"}]
    with Busy(lab):
        world.until(lambda: world.decisions()[-1]["rule"] == "calibrate-first", "it says what it lacks")
    assert world.decisions()[-1]["otherwise"]
    assert world.server.switches == ()


@pytest.mark.usefixtures("tree_again", "chain_wins")
def test_it_moves_the_server_where_that_pays_and_says_why(world: World, lab: LabServer) -> None:
    """Under load, the algo that the model says is better is told to the engine, live; requests go on, and all accounts agree."""
    assert claimed(lab) == "DDTREE"
    with Busy(lab):
        world.until(lambda: world.server.switches, "a switch", 20.0)
        world.until(lambda: world.server.mode == mode("dflash", KNOBS["dflash"]), "the new mode is known")
        assert claimed(lab) == "DFLASH"
        world.until(lambda: world.decisions()[-1]["decision"] == "hold", "it rests")

    (count,) = world.server.switches
    assert (count.new, count.means, count.result, count.count) == ("dflash:block_size=8", "live", "done", 1)
    switched = [row for row in world.decisions() if str(row["decision"]).startswith("switch")]
    assert [(row["decision"], row["rule"], row["conduct"]) for row in switched] == [
        ("switch dflash:block_size=8", "gain", "act")
    ]
    inputs = switched[0]["inputs"]
    assert isinstance(inputs, dict)
    assert inputs["worth_now_other"] > inputs["worth_now"]
    assert [event["result"] for event in world.said.of("switched")] == ["done"]
    page = metrics.page(world.loop.picture).decode()
    assert 'to="dflash:block_size=8",means="live",result="done"} 1\n' in page


@pytest.mark.usefixtures("chain_wins")
def test_one_line_a_change_and_none_a_second(world: World) -> None:
    """However long nothing changes, the log and the journal get no further line."""
    world.until(
        lambda: world.decisions() and world.decisions()[-1]["rule"] == "gain-too-small", "a decision that stands"
    )
    said, decided = len(world.said.events), len(world.decisions())
    for _ in range(50):
        world.loop.tick()
    assert (len(world.said.events), len(world.decisions())) == (said, decided)


@pytest.mark.slow
@pytest.mark.usefixtures("chain_wins")
@pytest.mark.parametrize("conduct", [AgentMode.OBSERVE, AgentMode.ADVISE])
def test_it_only_says_what_it_would_do(world: World, lab: LabServer, conduct: AgentMode) -> None:
    """Told to observe or to advise, it decides the same and touches nothing."""
    world.until(lambda: world.loop.picture.servers, "the server")
    world.ask(wire.SetConduct(who="ops@desk", conduct=conduct))
    with Busy(lab):
        world.until(lambda: any(row["rule"] == "gain" for row in world.decisions()), "it would switch", 20.0)
        for _ in range(20):
            world.loop.tick()
    assert (world.server.conduct, world.server.switches, world.server.acting) == (conduct, (), None)
    assert claimed(lab) == "DDTREE"
    assert [event["would"] for event in world.said.of("decision") if event["rule"] == "gain"] == [True]


@pytest.mark.slow
@pytest.mark.usefixtures("tree_again")
def test_a_hold_and_a_pin_win_over_everything(world: World, lab: LabServer) -> None:
    """Held, it acts on nothing; pinned, it goes where the pin says without a model or load; unpinned, it decides again."""
    world.until(lambda: world.server.modes if world.loop.picture.servers else (), "its ways are known")
    world.ask(wire.Hold(who="ops@desk", reason="firmware"))
    world.ask(wire.Pin(who="ops@desk", mode=mode("none"), for_s=600.0, reason="a demo"))
    world.until(lambda: world.decisions() and world.decisions()[-1]["rule"] == "held", "it is held")
    assert claimed(lab) == "DDTREE"
    world.ask(wire.Resume(who="ops@desk"))
    with Busy(lab):
        world.until(lambda: world.server.switches, "it goes where the pin says", 20.0)
    assert claimed(lab) == "None"
    assert world.server.pinned == "none (a demo, ops@desk)"
    world.until(
        lambda: world.decisions()[-1]["rule"] == "pinned" and world.decisions()[-1]["decision"] == "hold",
        "it stays there",
    )
    world.ask(wire.Unpin(who="ops@desk"))
    world.until(lambda: world.decisions()[-1]["rule"] != "pinned", "it decides again")


@pytest.mark.slow
@pytest.mark.usefixtures("tree_again", "chain_wins")
def test_a_restart_of_the_agent_forgets_nothing(tmp_path: Path, world: World, lab: LabServer) -> None:
    """Another agent on the same folder knows what the first put there, its counts, its orders and its decisions."""
    with Busy(lab):
        world.until(lambda: world.server.switches and world.server.acting is None, "a switch", 20.0)
    before = world.server
    world.close()
    again = World(tmp_path)
    again.until(lambda: again.server.mode == mode("dflash", KNOBS["dflash"]), "it knows what runs")
    assert again.server.switches == before.switches
    assert again.server.mode_s.keys() >= before.mode_s.keys()
    newest = again.ask(wire.Why(limit=200))["decisions"]
    assert isinstance(newest, list)
    assert [row for row in newest if row["rule"] == "gain"]
    again.close()


@pytest.mark.slow
def test_a_server_that_is_deployed_anew_or_undeployed(world: World, home: Path) -> None:
    """What a deploy changes is taken up within seconds, what an undeploy removes is let go; others are not disturbed."""
    world.until(lambda: world.server.sample, "the server")
    (home / "agent" / "server.json").write_text("{}")
    world.loop.tick()
    world.until(lambda: "server lab" in world.loop.picture.troubles, "a note that cannot be read is told")
    (home / "agent" / "server.json").unlink()
    world.until(lambda: not world.loop.picture.servers, "it is let go")
    assert world.said.of("server-gone") == [{"server": "lab"}]
