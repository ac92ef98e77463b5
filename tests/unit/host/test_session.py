"""The session on the host: requests in, replies out, several at once; gone as soon as its operator is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl.adapters import session_payload
from specctl.adapters.session import HostSession
from specctl.errors import SpecctlError
from specctl.host.session import OPS
from tests.unit.host.conftest import Opener, Server, running, until


class Raw:
    """A session spoken to byte by byte."""

    def __init__(self) -> None:
        argv = [sys.executable, "-I", "-S", "-c", session_payload.boot()]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.say(session_payload.modules())

    def say(self, content: bytes) -> None:
        """Send bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def hear(self) -> dict[str, object]:
        """Return the next reply."""
        assert self.process.stdout is not None
        found = json.loads(self.process.stdout.readline())
        assert isinstance(found, dict)
        return found

    def end(self) -> int:
        """Close all pipes and return the exit status."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        status = self.process.wait(10)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return status


@pytest.fixture
def raw() -> Iterator[Raw]:
    """A session spoken to byte by byte, ended with the test."""
    made = Raw()
    yield made
    made.process.kill()
    made.end()


def test_replies_carry_the_requests_ids(raw: Raw) -> None:
    """Requests in one packet are each answered under their own id, in any order."""
    raw.say(b'{"id":1,"op":"ping","args":{}}\n{"id":2,"op":"hello"}\n{"id":3,"op":"nonsense"}\n')
    replies = {reply["id"]: reply for reply in (raw.hear(), raw.hear(), raw.hear())}
    assert set(replies) == {1, 2, 3}
    assert "boottime_s" in str(replies[1]["result"])
    assert replies[3]["error"] == {
        "kind": "usage",
        "message": "no op named nonsense",
        "hint": None,
        "status": None,
        "output": "",
    }


def test_a_request_may_come_in_pieces(raw: Raw) -> None:
    """A line is a request only when its newline has come."""
    line = b'{"id":7,"op":"ping","args":{}}\n'
    for begin in range(0, len(line), 5):
        raw.say(line[begin : begin + 5])
    assert raw.hear()["id"] == 7


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'"x"', b'{"id":"x","op":"ping"}', b'{"op":"ping"}', b"\xff\xfe", b'{"id":1}']
)
def test_nonsense_is_answered_and_survived(raw: Raw, line: bytes) -> None:
    """What is no request gets an error under id 0; the session goes on."""
    raw.say(line + b"\n")
    refused = raw.hear()
    raw.say(b'{"id":1,"op":"ping","args":{}}\n')
    assert (refused["id"], raw.hear()["id"]) == (0, 1)


@pytest.mark.parametrize("args", [{"dir": 5}, {"dir": ""}, {}, {"dir": "relative"}, {"dir": None}])
def test_ill_typed_arguments_are_refused(session: HostSession, args: dict[str, object]) -> None:
    """An argument that is missing or of the wrong type is an error that names it, not a traceback."""
    with pytest.raises(SpecctlError, match="argument dir"):
        session.call("lease.status", args)


def test_the_page_lists_every_op() -> None:
    """docs/host-session.md names each op, and marks those that need the lease."""
    page = (Path(__file__).parents[3] / "docs" / "host-session.md").read_text()
    rows = re.findall(r"^\| (✎ )?`([a-z._]+)` \|", page, re.MULTILINE)
    assert {name: bool(marked) for marked, name in rows if name in OPS} == {name: op[2] for name, op in OPS.items()}


def test_it_ends_at_once_with_its_input(raw: Raw) -> None:
    """When standard input ends, the program ends with status 0, whatever it was doing."""
    raw.say(b'{"id":1,"op":"ping","args":{}}\n')
    raw.hear()
    assert raw.end() == 0


def test_it_ends_when_it_hears_nothing() -> None:
    """A connection that is cut without a word ends the session too, after the silence that it bears."""
    code = "from specctl.host import session; session.main(0.3)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as silent:
        assert silent.stdin is not None
        silent.stdin.write(b'{"id":1,"op":"ping","args":{}}\n')
        silent.stdin.flush()
        assert silent.wait(10) == 0


def test_the_unit_is_left_as_it_is(server: Server, open_session: Opener) -> None:
    """A session that ends, even by kill -9 while it watches, leaves the engine running."""
    pid = server.deploy("1")["main_pid"]
    assert isinstance(pid, int)
    server.session = open_session()
    own = server.session.hello["pid"]
    assert isinstance(own, int)
    looks = server.watch()
    thread = threading.Thread(target=looks._run)
    thread.start()
    until(lambda: looks.seen, "the first look")
    os.kill(own, signal.SIGKILL)
    thread.join(10)
    assert isinstance(looks.errors.get_nowait(), SpecctlError)
    assert running(pid)
