"""Small engines on the loopback: what they are made of, and one for tests of the load that streams what a test tells it to."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from specctl.adapters.local import LocalTransport
from specctl.adapters.transport import Transport
from specctl.fleet import types as fleet
from specctl.ops.engine_http import EngineClient
from tests import fakes

Asked = Mapping[str, Any]
# What is sent after the head, piece by piece; an int is a status in place of a stream.
Answer = Callable[[Asked], Iterator[bytes] | int]
STEP_S = 0.01


def chunk(count: int, *, finish: object = None, **meta: object) -> bytes:
    """Return an event of a stream."""
    info = {"finish_reason": finish, "completion_tokens": count, **meta}
    return b"data: " + json.dumps({"text": "x" * count, "meta_info": info}).encode() + b"\n\n"


def whole(asked: Asked, *, step: int = 3) -> Iterator[bytes]:
    """Answer as an engine does that commits so many tokens a step, the first one alone."""
    tokens = asked["sampling_params"]["max_new_tokens"]
    counts = [1, *range(1 + step, tokens, step)]
    for count in counts:
        yield chunk(count)
    end = {"prompt_tokens": 5, "cached_tokens": 0, "spec_verify_ct": len(counts)}
    yield chunk(tokens, finish={"type": "length", "length": tokens}, **end)
    yield b"data: [DONE]\n\n"


def paced(asked: Asked) -> Iterator[bytes]:
    """Answer whole, with steps that take some milliseconds, as an engine's do."""
    clock = threading.Event()
    for piece in whole(asked):
        clock.wait(STEP_S)
        yield piece


@dataclass(frozen=True, slots=True)
class Here:
    """A way to this machine."""

    transport: Transport


class Server(ThreadingHTTPServer):
    """A server that lets many knock at once: a full backlog would hold a client for a second."""

    request_queue_size = 128
    daemon_threads = True


class Loopback(ABC):
    """Serves on the loopback while it is a context; `get` and `post` answer."""

    def __init__(self) -> None:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                engine.get(self)

            def do_POST(self) -> None:
                engine.post(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def client_of(self, server: fleet.Server) -> EngineClient:
        """Return a client of what is served, as if it were that server."""
        return EngineClient(
            Here(LocalTransport(fakes.LOCAL)), replace(server, port=int(self._server.server_address[1]))
        )

    @abstractmethod
    def get(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a GET."""

    @abstractmethod
    def post(self, handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        """Answer a POST."""

    @staticmethod
    def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, *, whole: int | None = None) -> None:
        """Send an answer; `whole` is the length that is promised."""
        handler.send_response(status)
        handler.send_header("Content-Length", str(whole or len(body)))
        handler.end_headers()
        handler.wfile.write(body)


class SmallEngine(Loopback):
    """The engine; `most`: the largest number of requests that were inside at once, `asked`: all bodies, in their order."""

    def __init__(self, answer: Answer = whole) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[Asked] = []
        self.inside = self.most = 0
        self.seed = 7
        self.lock = threading.Lock()

    @property
    def client(self) -> EngineClient:
        """Return a client of this engine."""
        return self.client_of(replace(fakes.SERVER, profile=replace(fakes.PROFILE, engine="lab")))

    def get(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a GET: readiness, and what tells one start from another."""
        body = json.dumps({"random_seed": self.seed, "speculative_algorithm": None, "version": "1"}).encode()
        self.send(handler, 200 if handler.path.startswith(("/server_info", "/ready")) else 404, body)

    def post(self, handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        """Answer a request as the test says, and note that it was here."""
        with self.lock:
            self.asked.append(asked)
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            self._stream(handler, self.answer(asked))
        finally:
            with self.lock:
                self.inside -= 1

    def _stream(self, handler: BaseHTTPRequestHandler, answer: Iterator[bytes] | int) -> None:
        if isinstance(answer, int):
            self.send(handler, answer, b'{"object": "error", "message": "The request queue is full."}')
            return
        handler.send_response(200)
        handler.end_headers()
        try:
            for piece in answer:
                handler.wfile.write(piece)
                handler.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            return
