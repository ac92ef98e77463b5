"""What the doctor's probe asks an engine: greedy answers as they stream, the target's next token after a text, fresh drafts.

All of it is bounded in requests, tokens and time; nothing is changed on the engine. Answers are an engine's words, checked here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from specctl.adapters import http
from specctl.doctor.lossless_stream import Told, told
from specctl.doctor.lossless_types import Answer
from specctl.errors import RemoteCommandError
from specctl.ops.engine_http import EngineClient, failure_text

PATH = "/generate"
LIMIT_S = 120.0
"""Longest that one answer may take: on a busy engine a probe waits in the queue like anybody."""
BATCH = 32
"""Prompts of one request: SGLang takes lists, and one call costs less than many."""
PARALLEL = 4
"""Streams that are open at once, so that batches are mixed."""
_PREFIX = b"data:"
_DONE = b"[DONE]"
OK = 200

Text = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One greedy request to be streamed."""

    rid: str
    prompt: Text
    tokens: int


def body(prompts: Sequence[Text], *, tokens: int, rids: Sequence[str] | None = None) -> dict[str, object]:
    """Return a /generate body for greedy answers to token prompts; end tokens are ignored, so that lengths are known."""
    params = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
    asked: dict[str, object] = {"input_ids": [list(each) for each in prompts], "sampling_params": params}
    return asked if rids is None else {**asked, "rid": list(rids)}


def whole(
    client: EngineClient, content: Mapping[str, object], *, count: int, host: str
) -> tuple[Mapping[str, object], ...]:
    """Post a list of so many prompts and return an answer each; raises RemoteCommandError where the engine does not give them."""
    reply = client.post(PATH, content, timeout_s=LIMIT_S)
    answers = reply.body if reply.status == OK and isinstance(reply.body, list) else None
    if answers is not None and len(answers) == count and all(isinstance(each, Mapping) for each in answers):
        return tuple(answers)
    said = reply.failure or f"status {reply.status}"
    if answers is not None:
        said = f"{len(answers)} answers to {count} prompts" if len(answers) != count else "answers that are no objects"
    elif reply.status == OK:
        said = "no list of answers"
    raise RemoteCommandError(f"the probe got no answer from /generate: {said}", hint=f"specctl logs --host {host}")


def streamed(client: EngineClient, wanted: Sequence[Stream], *, host: str) -> Mapping[str, tuple[Told, ...]]:
    """Stream requests, some at once, and return each one's events; raises RemoteCommandError where one breaks off."""

    def one(request: Stream) -> tuple[str, tuple[Told, ...]]:
        content = {**body([request.prompt], tokens=request.tokens), "rid": request.rid, "stream": True}
        content["input_ids"] = list(request.prompt)
        return request.rid, tuple(_events(client, content, host=host))

    with ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="specctl-probe") as pool:
        return dict(pool.map(one, wanted))


def _events(client: EngineClient, content: Mapping[str, object], *, host: str) -> Iterator[Told]:
    lines = http.stream_lines(
        client.contact.transport,
        client.server.port,
        PATH,
        address=http.loopback_of(client.server.bind),
        content=content,
        key=client.key,
        timeout_s=LIMIT_S,
    )
    try:
        with contextlib.closing(lines):  # type: ignore[type-var]  # a generator, which its type does not say
            for line in lines:
                event = _event(line)
                if event is not None:
                    yield event
    except http.StreamFailed as error:
        said = (
            failure_text(error.failure)
            if not isinstance(error.failure, http.Answer)
            else f"status {error.failure.status}"
        )
        hint = f"specctl logs --host {host}"
        raise RemoteCommandError(f"the probe's stream from /generate ended: {said}", hint=hint) from error


def _event(line: bytes) -> Told | None:
    if not line.startswith(_PREFIX) or line[len(_PREFIX) :].strip() == _DONE:
        return None
    try:
        found = json.loads(line[len(_PREFIX) :])
    except (ValueError, RecursionError):
        return None
    return told(found) if isinstance(found, Mapping) else None


def target_says(
    client: EngineClient, contexts: Sequence[Text], *, host: str, leads: bool = False, batch: int = BATCH
) -> Mapping[Text, Answer]:
    """Return the target's greedy token after each text, by a plain prefill; `leads`: with its lead, by log-probabilities."""
    found: dict[Text, Answer] = {}
    for at in range(0, len(contexts), batch):
        part = contexts[at : at + batch]
        more = {"return_logprob": True, "top_logprobs_num": 2} if leads else {}
        for context, answer in zip(
            part, whole(client, {**body(part, tokens=1), **more}, count=len(part), host=host), strict=True
        ):
            read = told(answer)
            if read is not None and read.tokens:
                found[context] = Answer(token=read.tokens[0], gap=_lead(answer))
    return found


def _lead(answer: Mapping[str, object]) -> float | None:
    """Return by how many nats the best token leads, from `output_top_logprobs`: [[[logprob, id, text], …], …]."""
    meta = answer.get("meta_info")
    tops = meta.get("output_top_logprobs") if isinstance(meta, Mapping) else None
    first = tops[0] if isinstance(tops, list) and tops else None
    if not isinstance(first, list) or len(first) < 2:  # a lead takes two
        return None
    best = [each[0] for each in first[:2] if isinstance(each, list) and each and isinstance(each[0], int | float)]
    return abs(best[0] - best[1]) if len(best) == 2 else None
