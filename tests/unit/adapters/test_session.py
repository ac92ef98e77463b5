"""The operator's end of a session: calls, events, cancels, and every way in which a host goes away."""

from __future__ import annotations

import ast
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import specctl.host as host_program
from specctl.adapters.local import LocalTransport
from specctl.adapters.session import HostSession
from specctl.adapters.session_errors import OpCancelledError, of_start, of_wire
from specctl.adapters.transport import Stream
from specctl.errors import ConnectError, LockHeldError, RemoteCommandError, SpecctlError, UnsupportedError
from specctl.fleet.types import Host, Via
from tests.fleet.state import is_alive


@pytest.fixture
def session() -> Iterator[HostSession]:
    """A session on this machine."""
    transport = LocalTransport(Host(name="gpu1", via=Via.LOCAL))
    made = HostSession(transport, python=sys.executable)
    yield made
    made.close()
    transport.close()


def _logs(folder: Path) -> dict[str, object]:
    """Arguments of an op that runs until it is cancelled."""
    manager = {"kind": "supervisor", "home": str(folder), "program": "specctl-none", "python": sys.executable}
    return {"dir": str(folder / "k26"), "manager": manager, "follow": True}


def _probe(folder: Path, code: str, **more: object) -> dict[str, object]:
    """Arguments of an op that takes as long as its code."""
    return {"python": sys.executable, "code": code, "digest": "d1g3st", "cache_dir": str(folder), **more}


def test_hello_is_said_first(session: HostSession) -> None:
    """An open session has already told who the host is."""
    assert session.hello["uid"] == os.geteuid()


def test_calls_from_several_threads_do_not_mix(session: HostSession, tmp_path: Path) -> None:
    """Ops that run at the same time each get their own result."""
    found: dict[int, object] = {}

    def ask(number: int) -> None:
        args = _probe(tmp_path, f"import time; time.sleep(0.1); print({number})", digest=f"digest{number}")
        found[number] = session.call("probe", args, timeout_s=20)["stdout"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == {number: f"{number}\n" for number in range(6)}


def test_an_op_is_cancelled_by_an_event(session: HostSession, tmp_path: Path) -> None:
    """Setting the event ends an endless op soon, with its result."""
    done = threading.Event()
    threading.Timer(0.2, done.set).start()
    began = time.monotonic()
    assert session.call("logs", _logs(tmp_path), cancel=done, timeout_s=20) == {"lines": 0}
    assert time.monotonic() - began < 5.0


def test_cancel_ends_what_is_under_way(session: HostSession, tmp_path: Path) -> None:
    """`cancel` from another thread ends an endless op; the session goes on."""
    threading.Timer(0.3, session.cancel).start()
    assert session.call("logs", _logs(tmp_path), timeout_s=20) == {"lines": 0}
    assert "boottime_s" in session.call("ping", {})


def test_an_op_that_takes_too_long_is_cancelled(session: HostSession, tmp_path: Path) -> None:
    """Past its time the call raises, names the op, and the host is told to stop; the session goes on."""
    with pytest.raises(RemoteCommandError, match="logs did not finish within 0 s"):
        session.call("logs", _logs(tmp_path), timeout_s=0.3)
    assert "boottime_s" in session.call("ping", {}, timeout_s=5)


def test_what_an_event_handler_raises_comes_out(session: HostSession, tmp_path: Path) -> None:
    """An exception of `on_event` ends the call with itself, and the op with it."""
    (tmp_path / ".supervisor").mkdir()
    (tmp_path / "log").write_text("one\n")
    (tmp_path / ".supervisor" / "specctl-none.json").write_text(f'{{"log": "{tmp_path}/log"}}')

    def refuse(event: Mapping[str, object]) -> None:
        raise LookupError(str(event["lines"]))

    with pytest.raises(LookupError, match="one"):
        session.call("logs", {**_logs(tmp_path), "lines": 5}, on_event=refuse, timeout_s=20)
    assert "boottime_s" in session.call("ping", {}, timeout_s=5)


def test_a_killed_session_is_a_lost_connection(session: HostSession, tmp_path: Path) -> None:
    """When the host's program dies, calls under way and later ones raise ConnectError with the host's name."""
    pid = session.hello["pid"]
    assert isinstance(pid, int)
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(ConnectError, match="lost the connection") as caught:
        session.call("logs", _logs(tmp_path), timeout_s=20)
    with pytest.raises(ConnectError):
        session.call("ping", {})
    assert caught.value.host == "gpu1"


def test_close_ends_calls_under_way_and_the_program(session: HostSession, tmp_path: Path) -> None:
    """Closing from another thread wakes a call that waits; closing twice does nothing."""
    threading.Timer(0.2, session.close).start()
    with pytest.raises(ConnectError):
        session.call("logs", _logs(tmp_path), timeout_s=20)
    session.close()
    assert not is_alive(int(str(session.hello["pid"])))


class Scripted:
    """A transport whose program is a shell script in place of Python, for what hosts do that Python does not."""

    def __init__(self, script: str) -> None:
        self._inner = LocalTransport(Host(name="gpu1", via=Via.LOCAL))
        self._script = script
        self.host = "gpu1"

    def open(self, argv: Sequence[str], *, pty: bool = False) -> Stream:
        """Start the script, with the real program's argv as its arguments."""
        return self._inner.open(["/bin/sh", "-c", self._script, "sh", *argv], pty=pty)

    def connect(self, address: str, port: int, *, timeout_s: float) -> object:
        """Not used."""
        raise NotImplementedError

    def close(self) -> None:
        """Hang up."""
        self._inner.close()


def test_what_a_login_script_prints_is_passed_over() -> None:
    """Words of a shell's profile before the replies do not disturb the session."""
    transport = Scripted('echo "Welcome to gpu1"; echo "{}"; exec "$@"')
    session = HostSession(transport, python=sys.executable)  # type: ignore[arg-type]  # connect is not used here
    assert session.hello["uid"] == os.geteuid()
    session.close()
    transport.close()


def test_the_programs_last_words_are_in_the_error() -> None:
    """When it ends early, its exit status and last line on standard error tell why."""
    transport = Scripted("echo 'sh: disk on fire' >&2; exit 9")
    with pytest.raises(RemoteCommandError, match="did not start: sh: disk on fire") as caught:
        HostSession(transport, python=sys.executable)  # type: ignore[arg-type]  # as above
    assert (caught.value.status, caught.value.host) == (9, "gpu1")
    transport.close()


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("lock-held", LockHeldError),
        ("unsupported", UnsupportedError),
        ("remote-command", RemoteCommandError),
        ("cancelled", OpCancelledError),
        ("usage", SpecctlError),
        ("internal", SpecctlError),
        ("a kind of tomorrow", SpecctlError),
    ],
)
def test_kinds_become_errors(kind: str, error: type[SpecctlError]) -> None:
    """Each kind on the wire is one of specctl's errors, with host and hint."""
    found = of_wire("op", {"kind": kind, "message": "m", "hint": "h"}, host="gpu1")
    assert type(found) is error
    assert found.host == "gpu1"


def test_the_host_is_named_in_its_own_hints() -> None:
    """A host does not know what we call it: in its hints it stands as H, and we put the name there."""
    hint = "specctl lock release --host H, or --host HERE"
    found = of_wire("op", {"kind": "lock-held", "message": "m", "hint": hint}, host=r"gpu\1")
    assert found.hint == r"specctl lock release --host gpu\1, or --host HERE"


def _hints() -> Iterator[str]:
    """Yield every text that a program on a host passes as a hint, or calls one."""
    for path in Path(host_program.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Assign) and any(
                isinstance(at, ast.Name) and at.id == "hint" for at in node.targets
            )
            if named or (isinstance(node, ast.keyword) and node.arg == "hint"):
                inner = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                yield from (text for text in inner if isinstance(text, str))


def test_commands_in_a_hosts_hints_can_be_run_as_they_stand() -> None:
    """Each command that a host advises, of those that take a host, has the option that names it."""
    verbs = r"specctl (?:status|history|logs|stop|start|deploy|switch|rollback|restart|agent status|lock \w+)\b"
    advised = [(text, found.end()) for text in _hints() for found in re.finditer(verbs, text)]
    assert len(advised) > 10
    assert [text for text, end in advised if not text[end:].startswith(" --host H")] == []


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"kind": 5, "message": 7, "output": 3}])
def test_an_ill_formed_error_is_still_an_error(answer: object) -> None:
    """What a broken host answers never becomes a traceback."""
    assert of_wire("facts", answer, host="gpu1").message == "facts failed without a word"


def test_a_program_that_says_nothing_is_quoted_by_its_status() -> None:
    """Without a word on standard error the exit status is all that there is to say."""
    assert (
        of_start(9, "", refusal=None, python="python3", host="gpu1").message == "python3 did not start: exit status 9"
    )
