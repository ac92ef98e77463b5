"""The Transport contract, held to by both ways of reaching a host."""

from __future__ import annotations

import http.server
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specctl.adapters.connect import open_transport
from specctl.adapters.exchange import exchange
from specctl.adapters.quoting import MAX_LINE_BYTES
from specctl.adapters.transport import Transport
from specctl.errors import ConnectError, UsageError
from specctl.fleet.types import Host, Via
from tests.examples import examples

if TYPE_CHECKING:
    from tests.unit.adapters.conftest import Client

LIMIT_S = 10.0


@pytest.fixture(params=["local", "ssh"])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Open a transport of each kind."""
    if request.param == "local":
        host = Host(name="gpu1", via=Via.LOCAL)
    else:
        operator: Client = request.getfixturevalue("client")
        host = operator.host()
    opened = open_transport(host)
    yield opened
    opened.close()


def test_output_error_and_status_arrive_apart(transport: Transport) -> None:
    """Standard output, standard error and the exit status come back unmixed."""
    outcome = exchange(transport, ["sh", "-c", "echo out; echo err >&2; exit 7"], timeout_s=LIMIT_S)
    assert (outcome.status, outcome.stdout, outcome.stderr) == (7, b"out\n", b"err\n")


@pytest.mark.parametrize(("name", "status"), [("KILL", -9), ("TERM", -15), ("SEGV", -11)])
def test_signal_is_a_negative_status(transport: Transport, name: str, status: int) -> None:
    """A program that a signal ended has the negative signal number as its status."""
    outcome = exchange(transport, ["sh", "-c", f"kill -{name} $$"], timeout_s=LIMIT_S)
    assert outcome.status == status


def test_missing_program_is_status_127(transport: Transport) -> None:
    """A program that is not there is the shell's 127 with a word on standard error, both ways."""
    outcome = exchange(transport, ["/nonexistent/program"], timeout_s=LIMIT_S)
    assert outcome.status == 127
    assert "/nonexistent/program" in outcome.error_text


def test_much_data_both_ways_at_once(transport: Transport) -> None:
    """20 MB go out and come back through one program unchanged, while it also fills standard error."""
    content = os.urandom(1024 * 1024) * 20
    program = ["sh", "-c", "head -c 3000000 /dev/zero >&2 & cat; wait"]
    outcome = exchange(transport, program, content=content, timeout_s=60)
    assert outcome.stdout == content
    assert (outcome.status, len(outcome.stderr)) == (0, 3_000_000)


def test_program_that_ignores_its_input_is_no_error(transport: Transport) -> None:
    """A program that ends without reading a large input still delivers its output and status."""
    outcome = exchange(transport, ["sh", "-c", "exec <&-; echo done"], content=b"x" * 8_000_000, timeout_s=LIMIT_S)
    assert (outcome.status, outcome.stdout) == (0, b"done\n")


def test_output_comes_before_the_program_ends(transport: Transport) -> None:
    """Bytes are read as soon as they are written, and the input's end reaches the program."""
    stream = transport.open(["cat"])
    stream.write(b"one\n")
    assert stream.read(100, timeout_s=LIMIT_S) == b"one\n"
    stream.end_input()
    assert stream.read(100, timeout_s=LIMIT_S) == b""
    assert stream.wait(timeout_s=LIMIT_S) == 0
    stream.close()


def test_silence_is_a_timeout(transport: Transport) -> None:
    """Reading from a program that says nothing and waiting for one that goes on are TimeoutErrors, in time."""
    stream = transport.open(["sleep", "5"])
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="no output for"):
        stream.read(1, timeout_s=0.2)
    with pytest.raises(TimeoutError, match="still running"):
        stream.wait(timeout_s=0.2)
    assert time.monotonic() - started < 2
    stream.close()


def test_whole_exchange_is_bounded(transport: Transport) -> None:
    """A program that trickles for ever cannot outlast the limit on the whole exchange."""
    with pytest.raises(TimeoutError):
        exchange(transport, ["sh", "-c", "while :; do echo tick; sleep 0.1; done"], timeout_s=0.6)


def test_flood_is_bounded(transport: Transport) -> None:
    """A program that writes more than allowed is a ConnectError that names the host, not a full memory."""
    with pytest.raises(ConnectError, match="gpu1: a program wrote over 1000 bytes"):
        exchange(transport, ["head", "-c", "5000000", "/dev/zero"], timeout_s=LIMIT_S, max_bytes=1000)


def test_closing_wakes_a_reader(transport: Transport) -> None:
    """A thread that waits for output gets the end of file when another closes the stream."""
    stream = transport.open(["sleep", "5"])
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(stream.read(1)))
    reader.start()
    stream.close()
    reader.join(LIMIT_S)
    assert got == [b""]


def test_many_programs_at_once(transport: Transport) -> None:
    """One transport serves many threads."""
    answers: dict[int, bytes] = {}

    def ask(number: int) -> None:
        answers[number] = exchange(transport, ["echo", str(number)], timeout_s=LIMIT_S).stdout

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert answers == {number: f"{number}\n".encode() for number in range(12)}


def test_program_at_a_terminal(transport: Transport) -> None:
    """With a terminal the program sees one, and its end is the end of file."""
    stream = transport.open(["sh", "-c", "test -t 0 && test -t 1 && echo terminal"], pty=True)
    content = b""
    while piece := stream.read(100, timeout_s=LIMIT_S):
        content += piece
    assert content == b"terminal\r\n"
    assert stream.wait(timeout_s=LIMIT_S) == 0
    stream.close()


def test_writing_to_an_ended_program_is_a_connect_error(transport: Transport) -> None:
    """Input that nobody will read is told as such."""
    stream = transport.open(["true"])
    stream.wait(timeout_s=LIMIT_S)
    with pytest.raises(ConnectError, match="before it had read all"):
        stream.write(b"x" * 8_000_000)
    stream.close()


def test_unspeakable_argv_is_refused(transport: Transport) -> None:
    """A NUL and an empty argv are usage errors before anything runs."""
    for argv in (["echo", "a\0b"], [], [""]):
        with pytest.raises(UsageError):
            transport.open(argv)


def test_longest_command_line_runs(transport: Transport) -> None:
    """The longest line that is not refused really runs."""
    content = "x" * (MAX_LINE_BYTES - len("exec printf %s "))
    assert exchange(transport, ["printf", "%s", content], timeout_s=LIMIT_S).stdout == content.encode()


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40),
            st.text("'\"\\$`!*?[]{}()<>|&;~#%= \t\n\r", max_size=20),
            st.binary(max_size=10).map(lambda raw: os.fsdecode(raw.replace(b"\0", b""))),
        ),
        max_size=30,
    )
)
def test_every_argument_arrives_as_it_was(transport: Transport, arguments: list[str]) -> None:
    """Whatever characters an argv holds, NUL aside, the program gets exactly them."""
    outcome = exchange(transport, ["printf", "%s\\0", "first", *arguments], timeout_s=LIMIT_S)
    assert outcome.stdout.split(b"\0")[:-1] == [b"first", *(os.fsencode(argument) for argument in arguments)]


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"x" * 3_000_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_connect_is_a_socket_to_the_hosts_own_port(transport: Transport) -> None:
    """A socket from connect carries an HTTP exchange with a server on the host's loopback."""
    with http.server.HTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.handle_request).start()
        with transport.connect("127.0.0.1", server.server_port, timeout_s=LIMIT_S) as sock:
            sock.settimeout(LIMIT_S)
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
            content = b""
            while piece := sock.recv(65536):
                content += piece
    assert content.startswith(b"HTTP/1.0 200")
    assert content.endswith(b"\r\n\r\n" + b"x" * 3_000_000)


def test_connect_to_a_dead_port_is_refused(transport: Transport) -> None:
    """A port that nobody listens on is a ConnectionRefusedError, as for any socket."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            transport.connect("127.0.0.1", bound.getsockname()[1], timeout_s=LIMIT_S)


def test_half_closed_and_closed_sockets_reach_the_server(transport: Transport) -> None:
    """The server sees our end of input and still answers; closing altogether ends its connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LIMIT_S)
        sock = transport.connect("127.0.0.1", server.getsockname()[1], timeout_s=LIMIT_S)
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(LIMIT_S)
            sock.sendall(b"question")
            sock.shutdown(socket.SHUT_WR)
            assert accepted.makefile("rb").read() == b"question"
            accepted.sendall(b"answer")
            sock.settimeout(LIMIT_S)
            assert sock.recv(100) == b"answer"
            sock.close()
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                accepted.sendall(b"more" * 8_000_000)


def test_hanging_up_is_idempotent_and_ends_streams(transport: Transport) -> None:
    """Hanging up twice is no error, and a reader of a stream still open is not left waiting."""
    stream = transport.open(["sleep", "5"])
    ended = threading.Event()

    def read_on() -> None:
        try:
            stream.read(1)
        except ConnectError:
            pass
        finally:
            ended.set()

    threading.Thread(target=read_on, daemon=True).start()
    transport.close()
    transport.close()
    assert ended.wait(LIMIT_S)
