"""Who listens on a port: found by socket and process, for both address families."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from specctl.host import ports


@pytest.fixture(params=[(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::")])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A socket of this process that listens."""
    family, address = request.param
    with socket.socket(family) as made:
        try:
            made.bind((address, 0))
        except OSError:
            pytest.skip("no IPv6 here")
        made.listen()
        yield made


def test_own_and_foreign(listener: socket.socket) -> None:
    """A listener is OWN to the process that holds it and FOREIGN, with pid and name, to any other."""
    port = listener.getsockname()[1]
    assert ports.owner(port, [os.getpid()]) == ports.Owner(ports.OWN)
    foreign = ports.owner(port, [1])
    assert (foreign.port, foreign.pid) == (ports.FOREIGN, os.getpid())
    assert f"(pid {os.getpid()})" in (foreign.words() or "")


def test_nobody_listens_is_refused(listener: socket.socket) -> None:
    """A port that is only connected from, or was closed, is refused."""
    port = listener.getsockname()[1]
    listener.close()
    assert ports.owner(port, [os.getpid()]) == ports.Owner(ports.REFUSED)


def test_a_connection_is_no_listener(listener: socket.socket) -> None:
    """Only listening sockets count, not the connections on the same port."""
    address = listener.getsockname()
    with socket.create_connection(address[:2]):
        listener.close()
        assert ports.listening(address[1]) == []


def test_a_child_that_inherited_the_socket_owns_it_too() -> None:
    """A listener held by a worker process of the server is the server's own."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        port = made.getsockname()[1]
        argv = [sys.executable, "-S", "-c", "input()"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[made.fileno()]) as child:
            made.close()
            assert ports.owner(port, [child.pid]) == ports.Owner(ports.OWN)
            assert ports.owner(port, [os.getpid()]).pid == child.pid
            child.communicate(b"\n")
