"""An engine of a few lines for tests of the probe: its target is a sum, its steps commit two tokens, and a test may bend both."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from specctl.adapters.local import LocalTransport
from specctl.adapters.transport import Transport
from specctl.ops.engine_http import EngineClient
from tests import fakes

WIDTH = 2
VOCABULARY = 97
Body = dict[str, Any]


def target(context: Sequence[int]) -> int:
    """Return the next token of a text."""
    return sum((at + 1) * token for at, token in enumerate(context[-6:])) % VOCABULARY


@dataclass(frozen=True, slots=True)
class Here:
    """A way to this machine."""

    transport: Transport


def right(_context: Sequence[int], token: int, _drafted: bool) -> int:
    """Say what the target says."""
    return token


@dataclass(slots=True)
class Toy:
    """How it behaves: `says` may bend a token of a step (drafted: not the step's first), `change` a whole answer."""

    says: Callable[[Sequence[int], int, bool], int] = right
    change: Callable[[object], object] = field(default=lambda answer: answer)
    status: int = 200
    breaks_off: bool = False
    lead: float | None = None

    def answer(self, prompt: Sequence[int], asked: Body) -> list[Body]:
        """Return the events of one answer, each with all tokens so far."""
        wanted = asked["sampling_params"]["max_new_tokens"]
        text, events, calls, correct = list(prompt), [], 0, 0
        while len(text) - len(prompt) < wanted:
            first = len(text) == len(prompt)
            for at in range(1 if first else WIDTH):
                text.append(target(text) if first else self.says(text, target(text), at > 0))
            calls, correct = calls + (not first), correct + (0 if first else WIDTH - 1)
            made = text[len(prompt) :][:wanted]
            meta: Body = {"completion_tokens": len(made), "prompt_tokens": len(prompt)}
            if calls:
                meta |= {"spec_verify_ct": calls, "spec_num_correct_drafts": correct}
            if len(made) == wanted:
                meta["finish_reason"] = {"type": "length", "length": wanted}
            if asked.get("return_logprob") and self.lead is not None:
                meta["output_top_logprobs"] = [[[-0.1, made[0], None], [-0.1 - self.lead, 0, None]]]
            events.append({"output_ids": made, "meta_info": meta})
        return events


class ToyEngine:
    """Serves a toy on the loopback; use as a context manager."""

    def __init__(self, toy: Toy) -> None:
        self.asked: list[Body] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                engine.send(self, 200, json.dumps({}).encode())

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                engine.asked.append(asked)
                engine.generate(self, asked)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self.toy = toy
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def client(self) -> EngineClient:
        """Return a client of this engine."""
        server = replace(fakes.SERVER, port=int(self._server.server_address[1]), secrets={})
        return EngineClient(Here(LocalTransport(fakes.LOCAL)), server)

    def generate(self, handler: BaseHTTPRequestHandler, asked: Body) -> None:
        """Answer a request, streamed or whole."""
        if asked.get("stream"):
            events = self.toy.answer(asked["input_ids"], asked)
            lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]
            body = b"".join(lines)
            self.send(
                handler, self.toy.status, body[: len(body) // 2] if self.toy.breaks_off else body, whole=len(body)
            )
            return
        texts = [[ord(letter) % VOCABULARY for letter in text] for text in asked.get("text", ())]
        answers = [self.toy.answer(prompt, asked)[-1] for prompt in asked.get("input_ids", texts)]
        self.send(handler, self.toy.status, json.dumps(self.toy.change(answers)).encode())

    @staticmethod
    def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, *, whole: int | None = None) -> None:
        """Send an answer; `whole` is the length that is promised."""
        handler.send_response(status)
        handler.send_header("Content-Length", str(whole or len(body)))
        handler.end_headers()
        handler.wfile.write(body)
