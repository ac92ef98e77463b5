"""One look at a host in one round trip: how servers stand, the agent's answer, and the GPUs where the agent gave none."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import RemoteCommandError
from tests.unit.host.conftest import Server, free_port, until

LINE = '{"v":"1.1","op":"snapshot"}'


@contextlib.contextmanager
def agent(path: Path, reply: bytes | None) -> Iterator[list[bytes]]:
    """Answer each question on a socket as an agent does, or take it and say nothing; yields what was asked."""
    asked: list[bytes] = []
    ended = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(path))
        door.listen()
        door.settimeout(0.05)

        def serve() -> None:
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    caller, _ = door.accept()
                    with caller:
                        asked.append(caller.makefile("rb").readline())
                        if reply is None:
                            ended.wait(30.0)
                        else:
                            caller.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            ended.set()
            thread.join()


def look(session: HostSession, **args: object) -> Mapping[str, object]:
    """Look at this machine."""
    return session.call("look", args, timeout_s=20.0)


def standing(server: Server, port: int | None = None) -> Mapping[str, object]:
    """Return how a server stands, whose port is another one where it is given."""
    row = {"name": "k26", "dir": str(server.folder), "manager": server.manager, "port": port or server.port}
    rows = look(server.session, servers=[row])["servers"]
    assert isinstance(rows, list)
    found = rows[0]
    assert isinstance(found, dict)
    return found


def test_an_agents_answer_is_carried(session: HostSession, tmp_path: Path) -> None:
    """The line goes to the socket as it is and the reply comes back as it is; without servers that is all there is."""
    with agent(tmp_path / "s", b'{"v":"1.1","result":{}}\n') as asked:
        found = look(session, line=LINE, socket=str(tmp_path / "s"), gpus="without agent")
    assert asked == [LINE.encode() + b"\n"]
    assert (found["agent"], found["servers"], found["warnings"]) == ({"line": '{"v":"1.1","result":{}}'}, [], [])
    assert "gpus" not in found


def test_no_agent_is_no_error(session: HostSession, tmp_path: Path) -> None:
    """Where no agent runs the reason is told, and whether one is installed; the GPUs are then asked of the driver's tool."""
    found = look(session, line=LINE, socket=str(tmp_path / "none"), gpus="without agent")
    assert found["agent"] == {"problem": "the agent does not run on this host", "installed": False}
    assert "gpus" in found
    assert look(session)["agent"] is None


def test_a_silent_agent_is_bounded(session: HostSession, tmp_path: Path) -> None:
    """An agent that takes the question and says nothing costs a look no more than its own limit."""
    with agent(tmp_path / "s", None):
        found = look(session, line=LINE, socket=str(tmp_path / "s"))
    said = found["agent"]
    assert isinstance(said, dict)
    assert "does not answer" in str(said["problem"])


def test_a_request_is_one_line(session: HostSession, tmp_path: Path) -> None:
    """Two lines are refused: nothing else may be smuggled to the agent."""
    found = look(session, line="a\nb", socket=str(tmp_path / "s"))
    assert found["agent"] == {"problem": "a request is one line", "installed": False}
    with pytest.raises(RemoteCommandError, match="does not run"):
        session.call("agent.ask", {"line": "a", "socket": str(tmp_path / "none")}, timeout_s=20.0)


def test_how_a_server_stands(server: Server) -> None:
    """Release, unit, port and drift as facts tell them, and when the process began; no model and no package is looked at."""
    server.deploy("1", "none")
    until(lambda: standing(server)["port"] == "own", "it serves")
    found = standing(server)
    current, unit = found["current"], found["unit"]
    assert isinstance(current, dict)
    assert isinstance(unit, dict)
    assert (current["id"], current["algo"], unit["active"], found["drift"]) == ("1", "none", "active", False)
    assert isinstance(found["started_s"], float)
    assert not {"opening", "packages", "target", "capability"} & set(found)


def test_what_a_load_has_said(server: Server) -> None:
    """While nobody answers on the port of an active server, what this start has logged comes with the look."""
    server.deploy("1", "none")
    closed = free_port()
    until(lambda: standing(server, closed).get("opening"), "its lines are there")
    opening = standing(server, closed)["opening"]
    assert isinstance(opening, list)
    assert "Load weight begin." in opening


def test_several_servers_at_once(session: HostSession, tmp_path: Path) -> None:
    """A server that cannot be asked about has warnings, and takes no other one with it."""
    manager = {"kind": "supervisor", "home": str(tmp_path), "program": "specctl-k26", "python": sys.executable}
    rows = [
        {"name": "good", "dir": str(tmp_path / "good"), "manager": manager, "port": 1},
        {"name": "bad", "dir": str(tmp_path / "bad"), "manager": {"kind": "wrong"}, "port": 2},
    ]
    found = look(session, servers=rows)["servers"]
    assert isinstance(found, list)
    assert [(row["name"], bool(row["warnings"])) for row in found] == [("good", False), ("bad", True)]
