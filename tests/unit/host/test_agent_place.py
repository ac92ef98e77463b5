"""Which interpreters of a host could run the agent, and what its control socket and journal answer; over a real session here."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import SpecctlError
from specctl.host import agent_place
from specctl_agent.actuators import Cost, Errand
from specctl_agent.actuators.restart import BACK, REQUESTED, TAKEN
from specctl_agent.intent import Intents
from tests.agentworld import DDTREE, DFLASH


def test_the_interpreter_behind_an_environment_is_found(tmp_path: Path) -> None:
    """A virtual environment's python leads to the one that it was made from, and never to itself."""
    base = Path(os.path.realpath(sys.executable))
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    (folder / "python3").symlink_to(base)
    (folder / "python").symlink_to("python3")
    assert agent_place.base_of(str(folder / "python")) == str(base)
    assert agent_place.base_of(str(base)) == str(base)


@pytest.mark.parametrize(
    ("unit", "log", "reason"),
    [
        (
            # Of systemd 252, where the host's inotify instances had run out.
            "zz.path",
            (
                "Started zz.path.\nzz.path: Deactivated successfully.\nStopped zz.path.\nStopping zz.path...\n"
                "zz.path: Failed to enter waiting state: Too many open files\nzz.path: Failed with result 'resources'.\n"
                "Failed to start zz.path.\n"
            ),
            "zz.path: Failed to enter waiting state: Too many open files",
        ),
        (
            "specctl-agent.service",
            (
                "Starting specctl-agent.service...\nspecctl-agent: /etc/specctl/agent.json: no such file\n"
                "specctl-agent.service: Main process exited, code=exited, status=5/NOTINSTALLED\n"
                "specctl-agent.service: Failed with result 'exit-code'.\nFailed to start specctl-agent.service.\n"
            ),
            "specctl-agent: /etc/specctl/agent.json: no such file",
        ),
        (
            # A program that says nothing, in the place of one that ended as it should: that one's last word is no reason.
            "specctl-agent.service",
            (
                "Stopping specctl-agent.service...\nevent=stopped\nspecctl-agent.service: Deactivated successfully.\n"
                "Stopped specctl-agent.service.\nStarting specctl-agent.service...\n"
                "specctl-agent.service: Main process exited, code=exited, status=1/FAILURE\n"
                "specctl-agent.service: Failed with result 'exit-code'.\nFailed to start specctl-agent.service.\n"
            ),
            "Main process exited, code=exited, status=1/FAILURE",
        ),
        ("zz.path", "Stopped zz.path.\nzz.path: Failed with result 'resources'.\n", None),
        ("zz.path", "", None),
    ],
)
def test_the_reason_is_told_and_not_that_it_failed(unit: str, log: str, reason: str | None) -> None:
    """Of a unit's log the last line that gives a reason is told, whoever says it; none where none does."""
    assert agent_place.why_not_up(unit, log) == reason


def test_the_servers_that_get_no_requests_are_known(tmp_path: Path) -> None:
    """By the very journal that the agent writes: taken off by hooks or a gateway, and neither let in again nor ended."""
    journal = Intents(tmp_path / "intents.jsonl", boot="b1", wall=lambda: 5.0)

    def taken(server: str, by: str = "hooks") -> Errand:
        errand = journal.begin(server, Cost.RESTART, DDTREE, DFLASH, "why")
        errand.mark(TAKEN, {"by": by, "facts": {}})
        return errand

    def off() -> list[str]:
        return agent_place.taken_off((tmp_path / "intents.jsonl").read_bytes() + b'{"torn')

    journal.begin("begun", Cost.RESTART, DDTREE, DFLASH, "why")
    taken("outage", "nobody")
    back, ended = taken("back"), taken("ended")
    assert off() == ["back", "ended"]
    back.mark(BACK, {})
    journal.end(ended.id, "refused")
    assert off() == []
    taken("lab").mark(REQUESTED, {})
    assert off() == ["lab"]
    assert agent_place.taken_off(b"[]\n7\n\xff") == []


def test_a_folder_that_is_closed_is_named(tmp_path: Path) -> None:
    """An ordinary user passes every folder on the way, or the first that it may not is told."""
    inside = tmp_path / "open" / "shut" / "bin"
    inside.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/") and folder.owner() == Path("/proc/self").owner():
            folder.chmod(0o755)
    (tmp_path / "open" / "shut").chmod(0o700)
    assert agent_place.closed_at(str(inside / "python")) == str(tmp_path / "open" / "shut")
    assert agent_place.closed_at("/usr/bin/env") is None


def test_this_machines_interpreters_are_judged(session: HostSession, tmp_path: Path) -> None:
    """Each interpreter is asked and found fit, or said why not; what only looks like one is no reason to fail."""
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho nonsense\n")
    broken.chmod(0o755)
    found = session.call(
        "agent.look", {"prefix": str(tmp_path), "interpreters": True, "engines": [str(broken), sys.executable]}
    )
    assert (found["installed"], found["versions"]) == (None, [])
    rows = found["interpreters"]
    assert isinstance(rows, list)
    by_path = {row["path"]: row for row in rows}
    assert "does not run" in by_path[str(broken)]["why"]
    own = [row for row in rows if os.path.realpath(row["path"]) == os.path.realpath(sys.executable)]
    assert own[0]["version"][:2] == list(sys.version_info[:2])
    assert not [row for row in rows if row["why"] is None and row["prefix"] != row["base"]]


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[str]:
    """Answer one line on a socket, as an agent does."""
    path = str(tmp_path / "agent.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(1)

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                asked = sock.makefile("rb").readline()
                sock.sendall(b'{"asked": ' + asked.strip() + b"}\nmore")

        thread = threading.Thread(target=serve)
        thread.start()
        yield path
        thread.join()


def test_a_line_is_carried_there_and_back(session: HostSession, answering: str) -> None:
    """The request reaches the socket as it is, and the first line of the answer comes back."""
    assert session.call("agent.ask", {"line": '{"op":"status"}', "socket": answering}) == {
        "line": '{"asked": {"op":"status"}}'
    }


def test_no_agent_is_said_so(session: HostSession, tmp_path: Path) -> None:
    """Without a socket the agent does not run; two lines are no request."""
    with pytest.raises(SpecctlError, match="the agent does not run on this host"):
        session.call("agent.ask", {"line": "{}", "socket": str(tmp_path / "none.sock")})
    with pytest.raises(SpecctlError, match="a request is one line"):
        session.call("agent.ask", {"line": "{}\n{}", "socket": str(tmp_path / "none.sock")})


def test_decisions_are_read_where_no_agent_runs(session: HostSession, tmp_path: Path) -> None:
    """The newest of both files come, oldest first, of one server; torn and foreign lines are passed over."""
    path = tmp_path / "decisions.jsonl"
    args = {"file": str(path), "limit": 3, "server": "k26"}
    assert session.call("agent.decisions", args) == {"decisions": [], "there": False}
    rows = [{"server": "k26", "number": number} for number in range(5)]
    (tmp_path / "decisions.jsonl.1").write_text("\n".join(json.dumps(row) for row in rows[:3]))
    tail = [json.dumps(rows[3]), '{"server": "k2', "[1]", json.dumps({"server": "chat"}), json.dumps(rows[4]), ""]
    path.write_text("\n".join(tail))
    assert session.call("agent.decisions", args) == {"decisions": rows[2:], "there": True}
