"""One thread serves everybody: who misbehaves loses a connection, and nobody else waits for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specctl_agent import serving
from specctl_agent.serving import Serving, Spoken, listen_local

WAIT_S = 5.0


class Shout:
    """Answers each line with the same in capitals."""

    limit_bytes = 1000

    def answer(self, received: bytes) -> Spoken | None:
        """Answer one line; `bye` ends the connection, `much` asks for more than a socket holds."""
        line, end, _ = received.partition(b"\n")
        if not end:
            return None
        content = b"x" * 3_000_000 if line == b"much" else line.upper()
        return Spoken(content=content + b"\n", used=len(line) + 1, last=line == b"bye")

    def overlong(self) -> bytes:
        """Say that it was too much."""
        return b"TOO LONG\n"


class Place:
    """A served socket file, and a clock that a test moves."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "agent.sock")
        self.now_s = 0.0
        self.server = Serving([(listen_local(self.path, mode=0o600), Shout())], clock=lambda: self.now_s)
        self.server.start()

    def dial(self) -> socket.socket:
        """Return a connection."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(WAIT_S)
        sock.connect(self.path)
        return sock

    def ask(self, line: bytes) -> bytes:
        """Return the answer to one line on a connection of its own."""
        with self.dial() as sock:
            sock.sendall(line + b"\n")
            return sock.recv(100)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Serve for one test."""
    made = Place(tmp_path)
    yield made
    made.server.close()


def ended(sock: socket.socket) -> bool:
    """Claim that the other side hung up within the bound."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def until(claim: Callable[[], bool]) -> None:
    """Wait until the claim holds, bounded."""
    turn = threading.Event()
    for _ in range(500):
        if claim():
            return
        turn.wait(0.01)
    raise AssertionError("it did not come to pass")


def test_lines_are_answered_one_by_one_in_order(place: Place) -> None:
    """Several questions in one piece, and one question in several pieces, are each answered once."""
    with place.dial() as sock, sock.makefile("rb") as reader:
        sock.sendall(b"one\ntwo\nth")
        assert [reader.readline(), reader.readline()] == [b"ONE\n", b"TWO\n"]
        sock.sendall(b"ree\nbye\n")
        assert [reader.readline(), reader.readline(), reader.read()] == [b"THREE\n", b"BYE\n", b""]


def test_a_long_answer_arrives_whole(place: Place) -> None:
    """An answer that no buffer holds at once is sent as the client reads."""
    with place.dial() as sock, sock.makefile("rb") as reader:
        sock.sendall(b"much\nmore\n")
        assert (len(reader.readline()), reader.readline()) == (3_000_001, b"MORE\n")


def test_a_client_that_does_not_read_delays_nobody(place: Place) -> None:
    """With one answer stuck in a full pipe, others are answered, and the stuck one is cut off after a while."""
    with place.dial() as stuck:
        stuck.sendall(b"much\n" * 50)
        assert place.ask(b"hello") == b"HELLO\n"
        place.now_s += serving.PATIENCE_S + 0.1
        place.ask(b"hello")  # Whoever comes next makes the thread look round at once.
        until(lambda: place.server.turned_away == 1)
        while not ended(stuck):
            stuck.recv(1 << 20)


def test_a_silent_client_is_hung_up_on(place: Place) -> None:
    """A question that never ends in time loses its connection."""
    with place.dial() as silent:
        silent.sendall(b"hal")
        place.ask(b"hello")
        place.now_s += serving.PATIENCE_S + 0.1
        place.ask(b"hello")
        assert ended(silent)


def test_a_question_without_end_is_refused(place: Place) -> None:
    """No more is held of a client than the longest question; it is told so."""
    with place.dial() as endless:
        endless.sendall(b"x" * 1001)
        assert endless.recv(100) == b"TOO LONG\n"
        assert ended(endless)


def test_a_crowd_does_not_lock_anybody_out(place: Place) -> None:
    """Past the most connections, the one that has been still for longest makes room."""
    crowd = [place.dial() for _ in range(serving.MOST_CONNECTIONS)]
    assert place.ask(b"hello") == b"HELLO\n"
    assert place.server.turned_away == 1
    assert sum(_still_open(each) for each in crowd) == serving.MOST_CONNECTIONS - 1
    for each in crowd:
        each.close()


def _still_open(sock: socket.socket) -> bool:
    sock.settimeout(0.05)
    try:
        return sock.recv(1) != b""
    except TimeoutError:
        return True


def test_a_client_that_vanishes_is_forgotten(place: Place) -> None:
    """A connection that breaks in the middle of an answer harms nothing."""
    sock = place.dial()
    sock.sendall(b"much\n")
    sock.recv(1)
    sock.close()
    assert place.ask(b"hello") == b"HELLO\n"
    assert place.server.turned_away == 0


def test_a_socket_file_of_a_dead_agent_is_replaced_with_the_right_mode(tmp_path: Path) -> None:
    """The socket is nobody's but its owner's and its group's from the moment that it exists."""
    path = tmp_path / "agent.sock"
    listen_local(str(path), mode=0o660).close()
    listener = listen_local(str(path), mode=0o660)
    assert path.stat().st_mode & 0o7777 == 0o660
    listener.close()


def test_close_ends_the_thread_and_every_connection(place: Place) -> None:
    """After `close` nothing is served and nothing is left open."""
    with place.dial() as sock:
        sock.sendall(b"one\n")
        assert sock.recv(10) == b"ONE\n"
        place.server.close()
        assert ended(sock)
    with pytest.raises(ConnectionRefusedError):
        place.dial()
