"""A real supervisord with a small engine: the whole life of a server without systemd and without root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping

import pytest

from specctl.adapters.session_errors import OpCancelledError
from specctl.errors import RemoteCommandError, UnsupportedError
from tests.unit.host.conftest import Server, end_process, running, until

pytestmark = pytest.mark.slow  # whole lives of servers under supervisor


def _state(server: Server) -> Mapping[str, object]:
    found = server.call("unit.state")["unit"]
    assert isinstance(found, Mapping)
    return found


def test_deploys_serves_and_undeploys(server: Server) -> None:
    """A release is written, started, seen to own its port, stopped whole, and taken off the host."""
    unit = server.deploy("1", "none", "--child")
    until(lambda: server.call("unit.state")["port"] == "own", "the engine owns its port")
    state = server.call("unit.state")
    pids = state["pids"]
    assert (unit["active"], unit["sub"], unit["restarts"]) == ("active", "running", 0)
    assert isinstance(pids, list)
    assert len(pids) == 2
    stopped = server.call("unit.stop", timeout_s=10)
    assert (stopped["killed"], len(stopped["outlived"])) == (False, 1)  # type: ignore[arg-type]  # a list
    assert not any(running(pid) for pid in pids)
    daemon = server.daemon_pid()
    removed = server.call("unit.disable_remove", purge=True)
    assert "current" in str(removed["removed"])
    assert daemon is not None
    until(lambda: not running(daemon), "an idle supervisord ends")
    assert not (server.folder / "releases").exists()


def test_a_long_state_folder_is_no_hindrance(deep_server: Server) -> None:
    """Supervisord's socket is reached in a folder whose path no socket's address could hold."""
    assert deep_server.deploy("1")["active"] == "active"
    deep_server.call("unit.stop", timeout_s=10)
    assert _state(deep_server)["active"] == "inactive"


def test_switch_changes_the_running_program(server: Server) -> None:
    """Activation leaves the running engine alone; stop and start bring the new algo up under a new invocation."""
    server.write("1", none=server.conf("--text", "plain"), dflash=server.conf("--text", "chained"))
    server.call("release.activate", id="1", algo="none")
    first = server.started()
    server.call("release.activate", id="1", algo="dflash")
    between = _state(server)
    server.call("unit.stop", timeout_s=10)
    second = server.started()
    lines: list[str] = []
    with server.watch().going() as looks:
        looks.when(lambda look: "chained" in look.lines, "the new algo's line")
        lines = looks.lines()
    assert between == first
    assert second["invocation"] != first["invocation"]
    assert "plain" not in lines


def test_a_program_that_is_not_there_is_an_error(server: Server) -> None:
    """A command that does not exist fails the start with supervisord's word, not later."""
    server.write("1", none=server.conf().replace("command=", "command=/does/not/exist "))
    server.call("release.activate", id="1", algo="none")
    with pytest.raises(RemoteCommandError, match="cannot start specctl-k26"):
        server.call("unit.start")


def test_a_broken_configuration_is_refused_at_once(server: Server) -> None:
    """A running supervisord refuses a broken file when it is activated; the running engine goes on."""
    server.deploy("1")
    server.write("2", none="[program:specctl-k26]\nautostart=perhaps\n")
    with pytest.raises(RemoteCommandError, match="cannot read its configuration"):
        server.call("release.activate", id="2", algo="none")
    assert _state(server)["active"] == "active"


def test_exit_status_and_signal_are_told(server: Server) -> None:
    """An exit status is told as it is, a signal as 128 + its number."""
    server.deploy("1", "none", "--die-after", "0.1", "--status", "7")
    until(lambda: _state(server)["active"] == "failed", "the engine exits")
    exited = _state(server)
    pid = server.started()["main_pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    until(lambda: _state(server)["exit_status"] is not None and _state(server)["active"] == "failed", "it is told")
    killed = _state(server)
    assert (exited["result"], exited["exit_status"]) == ("exit-code", 7)
    assert (killed["result"], killed["exit_status"]) == ("signal", 137)


def test_restarts_are_counted(server: Server) -> None:
    """A restart by supervisord is a new invocation and raises the count."""
    first = server.deploy("1", "none", restart="unexpected")
    pid = first["main_pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    until(lambda: _state(server)["main_pid"] not in (None, pid), "supervisord starts it again")
    again = _state(server)
    assert again["restarts"] == 1
    assert again["invocation"] != first["invocation"]


def test_a_deaf_engine_is_killed_with_its_children(server: Server) -> None:
    """An engine that ignores SIGTERM is killed after the limit, its children too, and the result says so."""
    server.deploy("1", "none", "--deaf", "--child")
    until(lambda: server.call("unit.state")["port"] == "own", "the engine owns its port")
    pids = server.call("unit.state")["pids"]
    assert isinstance(pids, list)
    events: list[Mapping[str, object]] = []
    args = {**server.args, "timeout_s": 0.5}
    result = server.session.call("unit.stop", args, on_event=events.append, timeout_s=20)
    assert result["killed"] is True
    assert not any(running(pid) for pid in pids)
    assert any("waiting_for" in event for event in events)
    assert any("killing" in event for event in events)


def test_an_engine_whose_supervisord_died_is_still_stopped(server: Server) -> None:
    """When supervisord is killed its engine lives on: start refuses, stop ends it."""
    pid = server.deploy("1")["main_pid"]
    until(lambda: server.call("unit.state")["port"] == "own", "the engine is up and has said what it says")
    daemon = server.daemon_pid()
    assert isinstance(pid, int)
    assert daemon is not None
    end_process(daemon, signal.SIGKILL)
    with pytest.raises(RemoteCommandError, match=f"still runs as pid {pid}"):
        server.call("unit.start")
    server.call("unit.stop", timeout_s=10)
    assert not running(pid)
    assert server.started()["active"] == "active"


def test_supervisord_started_by_hand_brings_the_server_up(server: Server) -> None:
    """At boot, supervisord in its own folder with its own configuration starts what is current (docs/host-session.md)."""
    pid = server.deploy("1")["main_pid"]
    daemon = server.daemon_pid()
    assert isinstance(pid, int)
    assert daemon is not None
    for one in (daemon, pid):
        end_process(one, signal.SIGKILL)
    down = _state(server)
    argv = [sys.executable, "-m", "supervisor.supervisord", "-c", "supervisord.conf"]
    subprocess.run(argv, cwd=server.folder.parent / ".supervisor", check=True, timeout=20)
    until(lambda: server.call("unit.state")["port"] == "own", "the engine is up again")
    assert down["active"] == "inactive"
    assert _state(server)["main_pid"] != pid


def test_a_cancelled_stop_leaves_the_rest_to_the_manager(server: Server) -> None:
    """A stop that is cancelled while it waits ends at once, and kills nothing."""
    pid = server.deploy("1", "none", "--deaf")["main_pid"]
    assert isinstance(pid, int)
    until(lambda: server.call("unit.state")["port"] == "own", "the engine is deaf by now")
    done = threading.Event()
    args = {**server.args, "timeout_s": 60}
    with pytest.raises(OpCancelledError):
        server.session.call("unit.stop", args, on_event=lambda _: done.set(), cancel=done, timeout_s=30)
    assert running(pid)


def test_a_stranger_on_the_port_is_named_by_the_stop(server: Server, stranger: int) -> None:
    """What holds the port after the engine has gone is named with its pid; it is not touched."""
    server.deploy("1")
    pid = _state(server)["main_pid"]
    assert isinstance(pid, int)
    with pytest.raises(RemoteCommandError, match=rf"port {server.port} held by \S+ \(pid {stranger}\)"):
        server.call("unit.stop", timeout_s=1)
    assert running(stranger)
    assert not running(pid)


def test_an_interpreter_without_supervisor_is_refused(server: Server, bare_python: str) -> None:
    """An interpreter that lacks the package is named, with the command that would help."""
    server.write("1", none=server.conf())
    server.call("release.activate", id="1", algo="none")
    with pytest.raises(UnsupportedError, match="has no supervisor package") as caught:
        server.call("unit.start", manager={**server.manager, "python": bare_python})
    assert caught.value.hint is not None
    assert "pip install supervisor" in caught.value.hint


def test_logs_show_the_last_lines(server: Server) -> None:
    """The log's last lines come in order, carriage returns split."""
    server.deploy("1", "none", "--text", "last words")
    events: list[Mapping[str, object]] = []

    def lines() -> list[object]:
        events.clear()
        server.session.call("logs", {**server.args, "lines": 3}, on_event=events.append, timeout_s=5)
        return [line for event in events for line in event["lines"]]  # type: ignore[attr-defined]  # JSON of our own

    until(lambda: lines()[-1:] == ["last words"], "the engine's line reaches its log")
    assert lines() == ["shards: 50%", "shards: 100%", "last words"]
