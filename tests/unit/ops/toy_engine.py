"""An engine of a few lines for tests of the probe: its target is a sum, its steps commit two tokens, and a test may bend both."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any

from specctl.ops.engine_http import EngineClient
from tests import fakes
from tests.unit.ops.engines import Loopback

WIDTH = 2
VOCABULARY = 97
Body = dict[str, Any]


def target(context: Sequence[int]) -> int:
    """Return the next token of a text."""
    return sum((at + 1) * token for at, token in enumerate(context[-6:])) % VOCABULARY


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


class ToyEngine(Loopback):
    """Serves a toy on the loopback; use as a context manager."""

    def __init__(self, toy: Toy) -> None:
        super().__init__()
        self.asked: list[Body] = []
        self.toy = toy

    @property
    def client(self) -> EngineClient:
        """Return a client of this engine."""
        return self.client_of(replace(fakes.SERVER, secrets={}))

    def get(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a GET with nothing."""
        self.send(handler, 200, b"{}")

    def post(self, handler: BaseHTTPRequestHandler, asked: Body) -> None:
        """Answer a request, streamed or whole."""
        self.asked.append(asked)
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
