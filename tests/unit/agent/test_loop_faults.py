"""What engines, clocks, disks and strangers do to the loop: it turns on, says so, acts on nothing unknown, and recovers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control import wire
from specctl.control.mode import mode
from specctl.control.policy_types import Now
from specctl.control.sample.engine import Activity
from specctl_agent import loop as loops
from specctl_agent.clock import HostClock
from tests import labmodels
from tests.agentworld import ACT, KNOBS
from tests.labserver import LabServer
from tests.unit.agent.hostworld import API_KEY, World, calibrate, lay_out

pytestmark = pytest.mark.slow

TREE = ("--speculative-algorithm", "DDTREE", "--enable-metrics", "--api-key", API_KEY, "--admin-api-key", API_KEY)
NOW = replace(ACT, min_dwell_s=0.0, knobs={})
CHAIN_WINS = {
    "none": {"1": 10.0, "64": 100.0},
    "dflash": {"1": 100.0, "64": 1000.0},
    "ddtree": {"1": 50.0, "64": 500.0},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> labmodels.Folders:
    """Small models."""
    return labmodels.write(tmp_path_factory.mktemp("models"))


@pytest.fixture
def lab(folders: labmodels.Folders, tmp_path: Path) -> Iterator[LabServer]:
    """A lab server that a test may mistreat."""
    with LabServer(folders, tmp_path, *TREE) as started:
        yield started.ready()


@pytest.fixture
def world(tmp_path: Path, lab: LabServer) -> Iterator[World]:
    """The agent over it, with a model that would have it move."""
    calibrate(lay_out(tmp_path / "servers", lab.port, NOW, log=lab.log_path), CHAIN_WINS)
    made = World(tmp_path)
    yield made
    made.close()


def rule(world: World) -> object:
    """Return the rule of the newest decision."""
    found = world.decisions()
    return found[-1]["rule"] if found else None


def seen(world: World) -> Activity | None:
    """Return what the engine is seen to do."""
    return None if world.server.sample is None else world.server.sample.activity


def test_an_engine_that_dies_and_comes_back(world: World, lab: LabServer) -> None:
    """A killed engine is seen within seconds and held over; started again, it is watched as before, its counters begun anew."""
    world.until(lambda: seen(world) is Activity.IDLE, "an idle engine")
    assert lab.process is not None
    lab.process.kill()
    lab.process.wait()
    world.until(lambda: seen(world) is Activity.STALE, "it is gone")
    world.until(lambda: rule(world) in ("input-stale", "input-missing"), "it holds")
    health, _ = world.loop.picture.collectors["lab/engine_loads"]
    assert health.error is not None
    lab.spawn()
    lab.ready()
    world.until(lambda: seen(world) is Activity.IDLE, "it is back", 30.0)
    world.until(lambda: rule(world) == "gain-too-small", "it decides again")
    assert world.server.switches == ()


def test_an_engine_that_hangs_delays_nobody(world: World, lab: LabServer) -> None:
    """A stopped engine whose ports still take connections costs no turn its second, and is called stale, never idle."""
    world.until(lambda: seen(world) is Activity.IDLE, "an idle engine")
    assert lab.process is not None
    lab.process.send_signal(signal.SIGSTOP)
    try:
        world.until(lambda: seen(world) is Activity.STALE, "it hangs")
        longest = _longest_turn(world, 20)
        world.until(lambda: rule(world) in ("input-stale", "input-missing"), "it holds")
    finally:
        lab.process.send_signal(signal.SIGCONT)
    assert longest < loops.PERIOD_S / 2
    world.until(lambda: seen(world) is Activity.IDLE, "it is back", 30.0)


def _longest_turn(world: World, turns: int) -> float:
    longest = 0.0
    for _ in range(turns):
        began = time.monotonic()
        world.loop.tick()
        longest = max(longest, time.monotonic() - began)
        world.stopping.wait(0.05)
    return longest


def endless(sock: socket.socket) -> None:
    """Answer with a body that never ends, as fast as it is read."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        sock.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def half(sock: socket.socket) -> None:
    """Promise more than is sent, and hang up."""
    sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"loads": [')


def hostile(sock: socket.socket) -> None:
    """Answer with what would steer a terminal, break a log line, or be taken for numbers."""
    body = (
        b'{"loads":[{"num_running_reqs":"\\u001b[2J\\n<3>event=forged","num_waiting_reqs":1e999}],"version":"'
        + b"A" * 9000
        + b'"}'
    )
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def large(sock: socket.socket) -> None:
    """Answer with ten megabytes."""
    body = b"# x\n" * 2_500_000
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def silent(sock: socket.socket) -> None:
    """Take the question and say nothing."""
    sock.recv(1)


@pytest.mark.parametrize("answer", [endless, half, hostile, large, silent], ids=lambda answer: answer.__name__)
def test_an_engine_that_answers_anything(tmp_path: Path, answer: Callable[[socket.socket], None]) -> None:
    """Whatever comes for an answer, turns stay short, nothing is known, nothing is done, and no line is forged."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()
        threading.Thread(target=_serve, args=(listener, answer, over), daemon=True).start()
        lay_out(tmp_path / "servers", listener.getsockname()[1], NOW)
        world = World(tmp_path)
        try:
            world.until(lambda: world.loop.picture.collectors["lab/engine_loads"][0].last_duration_s, "a look")
            assert _longest_turn(world, 10) < loops.PERIOD_S / 2
            assert seen(world) is Activity.STALE
            assert (world.server.sample.running if world.server.sample else None) is None
            assert rule(world) in ("input-missing", "input-stale")
            status = world.ask(wire.Status())
            assert status["servers"]
            page = world.doors.page.answer(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert page is not None
            assert b"\x1b" not in page.content
            assert b"specctl_server_running_requests{" not in page.content
        finally:
            over.set()
            world.close()


def _serve(listener: socket.socket, answer: Callable[[socket.socket], None], over: threading.Event) -> None:
    def one(sock: socket.socket) -> None:
        with sock:
            try:
                sock.recv(65536)
                answer(sock)
            except OSError:
                return

    while not over.is_set():
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=one, args=(sock,), daemon=True).start()


class JumpingClock(HostClock):
    """The host's clocks, with a wall clock that somebody sets."""

    def __init__(self) -> None:
        super().__init__()
        self.off_s = 0.0

    def now(self) -> Now:
        """Return this instant."""
        found = super().now()
        return replace(found, wall_s=found.wall_s + self.off_s)


@pytest.mark.parametrize("jump_s", [3 * 365 * 86_400.0, -3 * 365 * 86_400.0])
def test_a_wall_clock_that_jumps(world: World, jump_s: float) -> None:
    """Years forward or back, the loop turns on with the same picture, invents no time, and decides as before."""
    clock = JumpingClock()
    world.loop.clock = clock
    world.until(lambda: rule(world) == "gain-too-small", "a decision")
    observed_s = world.loop.wards["lab"].watch.profile.observed_s
    clock.off_s = jump_s
    for _ in range(10):
        world.loop.tick()
    assert world.loop.wards["lab"].watch.profile.observed_s - observed_s < 60.0
    assert rule(world) == "gain-too-small"
    world.until(lambda: seen(world) is Activity.IDLE, "it sees as before")
    world.loop.save()
    again = World(world.folder)
    assert again.loop.wards["lab"].watch.profile.observed_s >= observed_s
    again.close()


def test_a_disk_that_is_full(tmp_path: Path, lab: LabServer) -> None:
    """With no byte left for its state the agent watches, answers and decides on, says so once, and recovers by itself."""
    state = tmp_path / "state"
    state.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(state)], check=False).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    try:
        calibrate(lay_out(tmp_path / "servers", lab.port, NOW, log=lab.log_path), CHAIN_WINS)
        world = World(tmp_path)
        world.until(lambda: rule(world) == "gain-too-small", "a decision")
        filler = state / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        ordered = world.ask(wire.Hold(who="ops@desk", reason="full"))
        assert ordered["saved"] is False
        for _ in range(5):
            world.loop.save()
            world.loop.tick()
        assert {"orders.json", "state.json"} <= set(world.loop.picture.troubles)
        assert len([event for event in world.said.of("trouble") if event["subject"] == "state.json"]) == 1
        assert world.server.held == "full"
        filler.unlink()
        world.loop.save()
        world.ask(wire.Resume(who="ops@desk"))
        world.until(lambda: not world.loop.picture.troubles, "it has recovered")
        world.close()
    finally:
        subprocess.run(["umount", "--lazy", str(state)], check=True)


def test_state_that_cannot_be_read_is_kept_and_begun_anew(tmp_path: Path, world: World) -> None:
    """Damaged and newer state files are kept aside and told; the agent starts clean, and held, for the orders may have said so."""
    world.until(lambda: rule(world) == "gain-too-small", "a decision")
    world.close()
    home = tmp_path / "state" / "servers" / "lab"
    (home / "profile.json").write_bytes(b"\x00\x01")
    (home / "state.json").write_text('{"format": 99}')
    (tmp_path / "state" / "orders.json").write_text("{")
    again = World(tmp_path)
    again.until(lambda: seen(again) is Activity.IDLE, "it watches")
    assert {str(event["file"]).rpartition("/")[2] for event in again.said.of("state-kept-aside")} == {
        "orders.json",
        "state.json",
    }
    assert "kept as profile.json.aside-1" in str(again.said.of("profile"))
    assert (home / "state.json.kept").read_text() == '{"format": 99}'
    again.until(lambda: rule(again) == "held", "it does nothing")
    again.ask(wire.Resume(who="ops@desk"))
    again.until(lambda: rule(again) == "gain-too-small", "it decides again")
    again.close()


def test_a_state_folder_that_is_gone(tmp_path: Path, world: World) -> None:
    """A folder that somebody removed is made anew; what is known goes on in memory, and back to the disk."""
    world.until(lambda: rule(world) == "gain-too-small", "a decision")
    shutil.rmtree(tmp_path / "state")
    world.loop.save()
    world.loop.tick()
    assert (tmp_path / "state" / "servers" / "lab" / "profile.json").exists()
    assert world.server.mode == mode("ddtree", KNOBS["ddtree"])
    assert world.ask(wire.Hold(who="ops@desk", reason="x"))["saved"] is True
