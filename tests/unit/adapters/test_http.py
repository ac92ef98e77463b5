"""The engine's HTTP client against servers that answer well, badly, slowly and not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from specctl.adapters import http
from specctl.adapters.connect import open_transport
from specctl.adapters.local import LocalTransport
from specctl.adapters.secrets import Secret
from specctl.errors import ConnectError
from specctl.fleet.types import Host, Via

if TYPE_CHECKING:
    from specctl.adapters.transport import Transport
    from tests.unit.adapters.conftest import Client

LIMIT_S = 10.0
Serve = Callable[[socket.socket], None]


class Peer:
    """A server that takes one call, keeps the request, and does with the connection what it is told."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.request = b""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError:
            return
        with accepted, contextlib.suppress(OSError):
            while b"\r\n\r\n" not in self.request:
                self.request += accepted.recv(65536)
            head, _, body = self.request.partition(b"\r\n\r\n")
            wanted = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            while len(body) < wanted:
                body += (piece := accepted.recv(65536))
                self.request += piece
            self._serve(accepted)

    def close(self) -> None:
        """Stop listening and wait for the call to end."""
        self._listener.close()
        self._thread.join(LIMIT_S)


@contextlib.contextmanager
def peer(*pieces: bytes) -> Iterator[Peer]:
    """Serve fixed bytes and hang up."""
    with serving(lambda sock: sock.sendall(b"".join(pieces))) as made:
        yield made


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[Peer]:
    """Serve by a function."""
    made = Peer(serve)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def local() -> LocalTransport:
    """Return the transport to this machine."""
    return LocalTransport(Host(name="gpu1", via=Via.LOCAL))


def get(transport: Transport, port: int, *, timeout_s: float = LIMIT_S, max_bytes: int = 1000) -> http.Outcome:
    """Make a plain call."""
    return http.request(transport, port, "GET", "/health", timeout_s=timeout_s, max_bytes=max_bytes)


def test_answer_is_whole(local: LocalTransport) -> None:
    """Status, headers and body come back, whatever the status, and redirects are not followed."""
    with peer(
        b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nX-Thing: a\r\nContent-Length: 5\r\n\r\nhello"
    ) as server:
        answer = get(local, server.port)
    assert isinstance(answer, http.Answer)
    assert (answer.status, answer.body, answer.headers["x-thing"]) == (302, b"hello", "a")
    assert 0 <= answer.took_s < LIMIT_S


def test_request_carries_json_and_the_key_in_a_header(local: LocalTransport) -> None:
    """JSON goes as the body, the key as a bearer header and nowhere else."""
    with peer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as server:
        http.request(
            local, server.port, "POST", "/generate", content={"text": "é"}, key=Secret("hush-hush"), timeout_s=LIMIT_S
        )
    head, _, body = server.request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /generate HTTP/1.1"
    assert json.loads(body) == {"text": "é"}
    assert [line for line in lines if "hush" in line] == ["Authorization: Bearer hush-hush"]
    assert "Content-Type: application/json" in lines


def test_proxies_of_the_environment_are_ignored(local: LocalTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """http_proxy and its kin have no effect."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    with peer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
        assert isinstance(get(local, server.port), http.Answer)
    assert server.request.startswith(b"GET /health HTTP/1.1\r\n")


def test_chunked_and_unframed_bodies_are_whole(local: LocalTransport) -> None:
    """A chunked body is put together, and one without a length ends with the connection."""
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"
    for content, body in ((chunked, b"abcdefg"), (b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc")):
        with peer(content) as server:
            answer = get(local, server.port)
        assert isinstance(answer, http.Answer)
        assert answer.body == body


def test_dead_port_is_refused(local: LocalTransport) -> None:
    """A port that nobody listens on is Refused, not an exception."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert isinstance(get(local, bound.getsockname()[1]), http.Refused)


@pytest.mark.parametrize(
    ("content", "status", "body"),
    [
        (b"", None, b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 200, b"abc"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nde", 200, b"abcde"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 200, b"abc"),
    ],
)
def test_half_an_answer_is_cut(local: LocalTransport, content: bytes, status: int | None, body: bytes) -> None:
    """A connection that ends before the answer is Cut, with what had come, however the body is framed."""
    with peer(content) as server:
        failure = get(local, server.port)
    assert isinstance(failure, http.Cut)
    assert (failure.status, failure.body) == (status, body)


@pytest.mark.parametrize(
    "content",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000,
        b"\xff\xfe\x00\x01\r\n\r\n",
    ],
)
def test_what_is_no_http_or_too_much_is_garbled(local: LocalTransport, content: bytes) -> None:
    """Another protocol, endless headers and a body over the limit are Garbled."""
    with peer(content) as server:
        assert isinstance(get(local, server.port), http.Garbled)


def test_silence_and_trickle_are_timed_out(local: LocalTransport) -> None:
    """The limit holds for the whole call: a byte now and then does not prolong it."""
    stop = threading.Event()

    def trickle(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
        while not stop.wait(0.05):
            sock.sendall(b"x")

    def silence(_: socket.socket) -> None:
        stop.wait(LIMIT_S)

    for serve in (trickle, silence):
        stop.clear()
        with serving(serve) as server:
            started = time.monotonic()
            failure = get(local, server.port, timeout_s=0.4)
            took_s = time.monotonic() - started
            stop.set()
        assert failure == http.TimedOut(limit_s=0.4, connected=True)
        assert took_s < 2


def test_lines_come_as_they_are_sent(local: LocalTransport) -> None:
    """Each line of a streamed answer is there before the next is sent."""
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        sock.sendall(b"a\r\ndata: 1\r\n\n\r\n")
        go_on.wait(LIMIT_S)
        sock.sendall(b"7\r\ndata: 2\r\n0\r\n\r\n")

    with serving(serve) as server:
        lines = http.stream_lines(local, server.port, "/generate", content={"stream": True}, timeout_s=LIMIT_S)
        assert next(lines) == b"data: 1"
        go_on.set()
        assert list(lines) == [b"", b"data: 2"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: 1\n\r\n", http.Cut),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: 1\n", http.Cut),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno", http.Answer),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", http.Answer),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nno", http.Cut),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x\n" * 2500, http.Garbled),
    ],
)
def test_broken_stream_is_told(local: LocalTransport, content: bytes, kind: type[http.Failure | http.Answer]) -> None:
    """A stream that breaks off, is refused or never ends is StreamFailed, never a quiet end."""
    with peer(content) as server, pytest.raises(http.StreamFailed) as caught:
        list(http.stream_lines(local, server.port, "/g", content={}, timeout_s=LIMIT_S, max_bytes=1000))
    assert isinstance(caught.value.failure, kind)


@pytest.mark.parametrize(
    ("bind", "address"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("::", "::1"),
        ("[::]", "::1"),
        ("10.1.1.1", "10.1.1.1"),
        ("[fd00::1]", "fd00::1"),
    ],
)
def test_address_follows_the_bind(bind: str, address: str) -> None:
    """A server bound to every address is asked on loopback, any other where it is bound."""
    assert http.loopback_of(bind) == address


def test_engine_is_asked_through_ssh(client: Client) -> None:
    """Calls go through the SSH connection; refusals and breaks look the same there; a lost host is a ConnectError."""
    with contextlib.closing(open_transport(client.host())) as transport:
        with peer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
            answer = get(transport, server.port)
        assert isinstance(answer, http.Answer)
        assert answer.body == b"ok"
        assert isinstance(get(transport, server.port), http.Refused)
        with peer(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc") as server:
            assert isinstance(get(transport, server.port), http.Cut)
        transport.close()
        with pytest.raises(ConnectError):
            get(transport, server.port)
