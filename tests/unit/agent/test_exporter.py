"""The metrics page over HTTP, asked by a real HTTP client over loopback."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator

import pytest

from specctl_agent.exporter import REQUEST_BYTES, MetricsPage
from specctl_agent.exposition import CONTENT_TYPE
from specctl_agent.serving import Serving, listen_tcp


class Counted:
    """A page that counts how often it was asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> bytes:
        """Return the page."""
        self.times += 1
        return b"specctl_up 1\n"


@pytest.fixture
def page() -> Counted:
    """Give the page that is served."""
    return Counted()


@pytest.fixture
def port(page: Counted) -> Iterator[int]:
    """Serve it on a free port of loopback."""
    listener = listen_tcp("127.0.0.1", 0)
    server = Serving([(listener, MetricsPage(page))])
    number = listener.getsockname()[1]
    server.start()
    assert isinstance(number, int)
    yield number
    server.close()


def fetch(port: int, method: str, path: str) -> tuple[int, str | None, bytes]:
    """Return status, type and body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path)
    reply = connection.getresponse()
    found = (reply.status, reply.getheader("Content-Type"), reply.read())
    connection.close()
    return found


def test_get_metrics(port: int) -> None:
    """A scraper gets the page in the format that it asked for."""
    assert fetch(port, "GET", "/metrics") == (200, CONTENT_TYPE, b"specctl_up 1\n")
    assert fetch(port, "GET", "/metrics?name[]=x")[0] == 200


def test_head_has_no_body(port: int) -> None:
    """HEAD is answered with the headers of GET alone."""
    assert fetch(port, "HEAD", "/metrics") == (200, CONTENT_TYPE, b"")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "/metrics", 405), ("GET", "/etc/passwd", 404), ("GET", "/", 200)]
)
def test_nothing_else_is_served(port: int, page: Counted, method: str, path: str, status: int) -> None:
    """Other paths and methods are refused in HTTP, and cost no page."""
    assert fetch(port, method, path)[0] == status
    assert page.times == 0


@pytest.mark.parametrize(
    ("sent", "first"),
    [
        (b"\r\n\r\n", b"HTTP/1.1 405"),
        (b"GET\r\n\r\n", b"HTTP/1.1 404"),
        (b"\xff\xfe \x00\r\n\r\n", b"HTTP/1.1 405"),
        (b"GET /" + b"a" * REQUEST_BYTES, b"HTTP/1.1 431"),
    ],
)
def test_hostile_requests_are_refused(port: int, sent: bytes, first: bytes) -> None:
    """What is no HTTP, or has no end, is told so and hung up on."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(sent)
        assert sock.recv(200).startswith(first)
