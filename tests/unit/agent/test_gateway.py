"""A real sglang-router before two lab servers: one is taken off, drained, started again and brought back; no request is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from specctl.fleet.types import Gateway, Host, SecretRef, SecretSource, Via
from specctl_agent.actuators import DoorError, Taken, ask
from specctl_agent.actuators.gateway import RouterGateway, settings
from tests import labmodels, routing
from tests.agentworld import engine_of, server_of
from tests.labserver import LabServer, wait_until
from tests.routing import Clients, Router

KEY, ROUTER_KEY = "sk-engine-0123456789", "sk-router-0123456789"
HERE = ask.Here.on(Host(name="here", via=Via.LOCAL))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not routing.installed(), reason=f"sglang-router {routing.VERSION} is not installed"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> labmodels.Folders:
    """Small models."""
    return labmodels.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def servers(folders: labmodels.Folders, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LabServer]]:
    """Two servers that ask for a key."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        made = [stack.enter_context(LabServer(folders, folder, "--api-key", KEY)) for _ in range(2)]
        yield [server.ready() for server in made]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    """A router with a key of its own, and no workers yet."""
    with Router(tmp_path_factory.mktemp("router"), key=ROUTER_KEY) as started:
        yield started


@pytest.fixture
def router(running: Router, servers: list[LabServer]) -> Router:
    """The router with both servers, the first one registered in a way of its own."""
    if running.worker(servers[0].url) is None:
        running.register(servers[0].url, api_key=KEY, priority=70, cost=2.5, labels={"zone": "x"})
    if running.worker(servers[1].url) is None:
        running.register(servers[1].url, api_key=KEY)
    return running


def secret(path: Path, value: str) -> SecretRef:
    """Put a key into a file and refer to it."""
    path.write_text(value)
    path.chmod(0o600)
    return SecretRef(source=SecretSource.FILE, locator=str(path))


@pytest.fixture
def door(router: Router, servers: list[LabServer], tmp_path: Path) -> RouterGateway:
    """The door to the first server."""
    return door_of(router, servers[0].url, tmp_path)


def door_of(router: Router, worker: str, folder: Path, *, last_ok: bool = False) -> RouterGateway:
    """Return the door to a worker."""
    gateway = Gateway(
        kind="sglang-router", url=router.url, worker=worker, api_key=secret(folder / "router_key", ROUTER_KEY)
    )
    return RouterGateway(
        gateway, HERE, threading.Event(), engine_key=secret(folder / "engine_key", KEY), last_ok=last_ok, back_s=20.0
    )


def test_a_server_comes_back_as_it_was(router: Router, servers: list[LabServer], door: RouterGateway) -> None:
    """Its settings are noted before it is removed; registered again, it has priority, cost, labels, key and health."""
    before = router.worker(servers[0].url)
    assert before is not None
    noted: list[Taken] = []

    def mark(taken: Taken) -> None:
        assert router.worker(servers[0].url) is not None
        noted.append(taken)

    taken = door.take_off(mark)
    assert noted == [taken]
    assert router.worker(servers[0].url) is None
    assert KEY not in repr(taken)
    assert ROUTER_KEY not in repr(door)
    door.bring_back(taken)
    after = router.worker(servers[0].url)
    assert after is not None
    assert {name: after[name] for name in ("priority", "cost", "metadata", "worker_type", "is_healthy")} == {
        name: before[name] for name in ("priority", "cost", "metadata", "worker_type", "is_healthy")
    }
    door.bring_back(taken)
    assert len(router.workers()) == 2


def test_no_request_is_lost_while_one_is_started_again(
    router: Router, folders: labmodels.Folders, servers: list[LabServer], tmp_path: Path
) -> None:
    """Under steady traffic: off the router, empty, stopped, started, back; each request was answered whole, by both afterwards."""
    with LabServer(folders, tmp_path, "--api-key", KEY) as third:
        third.ready()
        router.register(third.url, api_key=KEY)
        door = door_of(router, third.url, tmp_path)
        keys = {"api_key": tmp_path / "engine_key"}
        engine = engine_of(server_of(third.port, keys=keys))
        with Clients(router) as clients:
            wait_until(lambda: clients.answered > 10, what="answers")
            wait_until(lambda: (engine.running_requests() or 0) > 0, what="a request on the third")
            taken = door.take_off(lambda _: None)
            wait_until(lambda: engine.running_requests() == 0, what="it is empty")
            assert third.process is not None
            third.process.terminate()
            third.wait_exit()
            at_stop = clients.answered
            third.spawn()
            third.ready()
            wait_until(lambda: clients.answered > at_stop + 5, what="the others serve")
            door.bring_back(taken)
            wait_until(lambda: (engine.running_requests() or 0) > 0, what="requests come back to it")
        assert set(clients.statuses) == {"whole"}, clients.statuses
        door.take_off(lambda _: None)


def test_the_last_healthy_worker_stays(router: Router, servers: list[LabServer], tmp_path: Path) -> None:
    """Nobody else would serve: refused before anything is noted, unless the inventory accepts an outage."""
    door_of(router, servers[1].url, tmp_path).take_off(lambda _: None)
    marks: list[Taken] = []
    with pytest.raises(DoorError, match="nobody would serve meanwhile"):
        door_of(router, servers[0].url, tmp_path).take_off(marks.append)
    assert marks == []
    assert router.healthy(servers[0].url)
    door_of(router, servers[0].url, tmp_path, last_ok=True).take_off(marks.append)
    assert router.workers() == []


def test_an_unknown_worker_and_a_wrong_key_are_said(router: Router, servers: list[LabServer], tmp_path: Path) -> None:
    """A worker that the router does not know, a key that it does not take: refused in words, nothing changed."""
    with pytest.raises(DoorError, match=r"knows no worker http://127\.0\.0\.1:9"):
        door_of(router, "http://127.0.0.1:9", tmp_path).take_off(lambda _: None)
    door = door_of(router, servers[0].url, tmp_path)
    (tmp_path / "router_key").write_text("sk-wrong-9876543210")
    with pytest.raises(DoorError, match="status 401"):
        door.take_off(lambda _: None)
    assert len(router.workers()) == 2


def test_a_server_that_stays_dead_is_not_back(
    router: Router, folders: labmodels.Folders, servers: list[LabServer], tmp_path: Path
) -> None:
    """The worker is gone for good: bring_back says after its limit that requests do not come back."""
    with LabServer(folders, tmp_path, "--api-key", KEY) as third:
        third.ready()
        router.register(third.url, api_key=KEY)
        door = door_of(router, third.url, tmp_path)
        taken = door.take_off(lambda _: None)
    quick = RouterGateway(door.gateway, HERE, threading.Event(), engine_key=door.engine_key, back_s=1.0)
    with pytest.raises(DoorError, match="was registered and is not healthy after 1 s"):
        quick.bring_back(taken)


def test_no_gateway_is_an_error_of_the_door(tmp_path: Path) -> None:
    """Nobody listens at the address: said so, with the address."""
    gateway = Gateway(kind="sglang-router", url="http://127.0.0.1:9", worker="http://127.0.0.1:8")
    with pytest.raises(DoorError, match=r"http://127\.0\.0\.1:9 gave no answer: refused"):
        RouterGateway(gateway, HERE, threading.Event()).take_off(lambda _: None)


def test_what_is_registered_again_holds_no_key() -> None:
    """Settings keep what somebody said, and leave out what the router finds out by itself."""
    row = {
        "id": "u", "url": "http://h:1", "model_id": "m", "priority": 50, "cost": 1.0, "worker_type": "regular",
        "is_healthy": True, "load": 3, "api_key": "sk", "metadata": {"tp_size": "1", "zone": "a"},
        "disable_health_check": False,
    }  # fmt: skip
    assert settings(row) == {
        "url": "http://h:1",
        "model_id": "m",
        "priority": 50,
        "cost": 1.0,
        "worker_type": "regular",
        "disable_health_check": False,
        "labels": {"zone": "a"},
    }
