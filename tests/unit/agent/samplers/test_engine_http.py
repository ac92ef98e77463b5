"""The engine's connection: whole answers or none, in bounded time and memory, and the key nowhere but in its header."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl_agent.samplers.engine_http import Answer, EngineHttp, NoAnswerError

PATIENCE_S = 10.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Engine:
    """Answers each request on a connection with the next of its texts; closes after `each` of them, or says nothing more."""

    def __init__(self, *answers: bytes, each: int = 1000, silent: bool = False) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._answers = list(answers)
        self._each = each
        self._silent = silent
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_S)
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    connection.settimeout(PATIENCE_S)
                    self.connections += 1
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        for _ in range(self._each):
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(4096)
                if not part:
                    return
                request += part
            self.requests.append(request)
            if not self._answers:
                return
            connection.sendall(self._answers.pop(0))
            if self._silent:
                self._over.wait(PATIENCE_S)
                return

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(PATIENCE_S)


@contextlib.contextmanager
def engine(*answers: bytes, each: int = 1000, silent: bool = False) -> Iterator[Engine]:
    """Give an engine that answers this."""
    found = Engine(*answers, each=each, silent=silent)
    try:
        yield found
    finally:
        found.close()


def get(port: int, *, key_file: Path | None = None, limit: int = 1000, within_s: float = PATIENCE_S) -> Answer:
    """Ask once."""
    http = EngineHttp("127.0.0.1", port, key_file=key_file)
    try:
        return http.get("/v1/loads", limit=limit, within_s=within_s)
    finally:
        http.close()


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 200 OK\r\ncontent-length:5\r\nX: y\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: z\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ],
    ids=["length", "lower-case", "chunked", "to-the-end"],
)
def test_an_answer_is_read_whole(answer: bytes) -> None:
    """By its length, in chunks, or to the end of the connection."""
    with engine(answer, each=1) as found:
        assert get(found.port) == Answer(status=200, body=b"hello")


def test_a_connection_is_kept() -> None:
    """Three requests go over one connection, chunked and empty answers between them."""
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    with engine(OK, chunked, b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n") as found:
        http = EngineHttp("127.0.0.1", found.port)
        answers = [http.get("/ready", limit=100, within_s=PATIENCE_S) for _ in range(3)]
        http.close()
        assert [(one.status, one.body) for one in answers] == [(200, b"hello"), (200, b"hello"), (503, b"")]
        assert found.connections == 1


def test_a_connection_that_was_closed_meanwhile_is_opened_anew() -> None:
    """An engine that closes a kept connection after five idle seconds costs no look."""
    with engine(OK, OK, each=1) as found:
        http = EngineHttp("127.0.0.1", found.port)
        answers = [http.get("/ready", limit=100, within_s=PATIENCE_S) for _ in range(2)]
        http.close()
        assert [one.body for one in answers] == [b"hello"] * 2
        assert found.connections == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "closed in the middle"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "closed in the middle"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", "closed in the middle"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "closed in the middle"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", "no end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, "too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", "over the limit"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n", "over the limit"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "no sensible length"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 5000, "over the limit"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40_000, "too long"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "speaks no HTTP"),
        (b"HTTP/1.1 two OK\r\n\r\n", "speaks no HTTP"),
    ],
)  # fmt: skip
def test_half_long_and_foreign_answers_are_refused(answer: bytes, said: str) -> None:
    """What is not a whole answer within the limit is no answer, with the reason."""
    with engine(answer, each=1) as found, pytest.raises(NoAnswerError, match=said):
        get(found.port)


def test_what_nobody_asked_for_is_no_answer_to_the_next() -> None:
    """An engine that answers twice to one request gets a new connection for the next: no answer is taken for another's."""
    with engine(OK + OK.replace(b"hello", b"wrong"), OK, each=2) as found:
        http = EngineHttp("127.0.0.1", found.port)
        answers = [http.get("/ready", limit=100, within_s=PATIENCE_S).body for _ in range(2)]
        http.close()
        assert (answers, found.connections) == ([b"hello", b"hello"], 2)


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
    ]
)


@given(HEADS, st.binary(max_size=60))
def test_no_answer_makes_it_raise_anything_else(head: bytes, rest: bytes) -> None:
    """Whatever bytes come back, there is an answer within the limit or a NoAnswerError."""
    with engine(head + rest, each=1) as found:
        try:
            assert len(get(found.port, limit=100).body) <= 100
        except NoAnswerError as error:
            assert error.message.startswith("GET /v1/loads: ")  # noqa: PT017  # either way is right


def test_an_engine_that_says_nothing_costs_its_time_and_no_more() -> None:
    """An open port that never answers (a dead scheduler's) ends at the limit."""
    with engine(b"HTTP/1.1 200 OK\r\n", silent=True) as found:
        began = time.monotonic()
        with pytest.raises(NoAnswerError, match="no whole answer in time"):
            get(found.port, within_s=0.2)
        assert time.monotonic() - began < 2.0


def test_an_answer_that_drips_ends_at_the_limit_too() -> None:
    """The limit is for the whole answer: a byte now and then does not prolong it."""
    drip = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = drip.accept()
            with connection:
                while not over.wait(0.02):
                    connection.sendall(b"H")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        began = time.monotonic()
        with pytest.raises(NoAnswerError, match="in time"):
            get(drip.getsockname()[1], within_s=0.3)
        assert time.monotonic() - began < 2.0
    finally:
        over.set()
        drip.close()
        thread.join(PATIENCE_S)


def test_a_port_that_nobody_holds_is_no_answer() -> None:
    """Refused: loading or dead, no answer either way."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NoAnswerError, match="refused"):
        get(port)


def test_the_key_goes_into_its_header(tmp_path: Path) -> None:
    """The file's key is sent, without the line's end, and read anew with the next connection."""
    key_file = tmp_path / "key"
    key_file.write_text("sk-one\n")
    with engine(OK, OK, each=1) as found:
        get(found.port, key_file=key_file)
        key_file.write_text("sk-two")
        get(found.port, key_file=key_file)
        keys = [
            line for request in found.requests for line in request.split(b"\r\n") if line.startswith(b"Authorization")
        ]
        assert keys == [b"Authorization: Bearer sk-one", b"Authorization: Bearer sk-two"]


@pytest.mark.parametrize("content", ["", "sk-one\r\nX: y", "a b", "k" * 5000, "schlüssel"])
def test_what_is_no_key_is_not_sent(tmp_path: Path, content: str) -> None:
    """An empty file, one with more than a key or with what no header takes is refused, and the error tells no key."""
    key_file = tmp_path / "key"
    key_file.write_text(content, encoding="utf-8")
    with engine(OK) as found, pytest.raises(NoAnswerError) as caught:
        get(found.port, key_file=key_file)
    assert content == "" or content not in f"{caught.value!r} {caught.value} {caught.value.hint}"
    assert found.requests == []


def test_a_key_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A missing key file is no answer, with its path."""
    with engine(OK) as found, pytest.raises(NoAnswerError, match="no-such-key"):
        get(found.port, key_file=tmp_path / "no-such-key")


def test_the_key_is_in_no_repr(tmp_path: Path) -> None:
    """Neither the connection nor anything it raises shows the key."""
    key_file = tmp_path / "key"
    key_file.write_text("sk-secret")
    with engine(b"HTTP/1.1 nonsense sk\r\n\r\n", each=1) as found:
        http = EngineHttp("127.0.0.1", found.port, key_file=key_file)
        with pytest.raises(NoAnswerError) as caught:
            http.get("/x", limit=10, within_s=PATIENCE_S)
        chain: Sequence[BaseException | None] = (caught.value, caught.value.__cause__, caught.value.__context__)
        assert "sk-secret" not in f"{http!r} {chain!r}"
