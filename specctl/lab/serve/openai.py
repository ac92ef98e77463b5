"""/v1/completions and /v1/chat/completions, whole and streamed, in the shapes that the `openai` package reads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from specctl.lab.serve import answers, openai_read, streams
from specctl.lab.serve.answers import BadRequestError
from specctl.lab.serve.openai_read import Asked
from specctl.lab.serve.service import Service
from specctl.lab.serve.ticket import QueueFullError, Ticket
from specctl.lab.types import FinishReason

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one route reads its body and writes its choices."""

    whole: str
    chunk: str
    read: Callable[[Mapping[str, object], Service], Asked]
    choice: Callable[[int, Ticket], Json]
    opening: Callable[[int], Json] | None
    delta: Callable[[int, str, Ticket], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every object of one answer repeats."""

    rid: str
    created: int
    model: str

    def body(self, kind: str, choices: Sequence[Json], **more: object) -> Json:
        """Return an object of the answer."""
        return {
            "id": self.rid,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": list(choices),
            **more,
        }


async def answer(request: Request, service: Service, style: Style) -> Response:
    """Serve a request of either route."""
    try:
        asked = style.read(await answers.json_object(request), service)
        head = Head(rid=uuid.uuid4().hex, created=int(time.time()), model=asked.model)
        if asked.stream:
            return await streams.open_stream(_events(asked, head, service, style))
        return JSONResponse(await streams.unless_gone(request, _whole(asked, head, service, style)))
    except BadRequestError as error:
        return answers.openai_error(str(error))
    except QueueFullError as error:
        return answers.queue_full(str(error))


async def _whole(asked: Asked, head: Head, service: Service, style: Style) -> Json:
    """Return the finished answer."""
    async with contextlib.AsyncExitStack() as stack:
        tickets = await _open(asked, head, service, stack)
        await asyncio.gather(*(ticket.ended() for ticket in tickets))
        choices = [style.choice(index, ticket) for index, ticket in enumerate(tickets)]
        return head.body(style.whole, choices, usage=_usage(tickets), metadata={"weight_version": "default"})


async def _events(asked: Asked, head: Head, service: Service, style: Style) -> AsyncIterator[str]:
    """Yield the answer's chunks: what is new since the last one of the same choice."""
    async with contextlib.AsyncExitStack() as stack:
        tickets = await _open(asked, head, service, stack)
        sent = [0] * len(tickets)
        opened = [False] * len(tickets)
        async for index in streams.changes(tickets):
            ticket = tickets[index]
            if style.opening is not None and not opened[index]:
                opened[index] = True
                yield json.dumps(head.body(style.chunk, [style.opening(index)], usage=None))
            fresh = ticket.text[sent[index] :]
            sent[index] += len(fresh)
            if fresh or ticket.finish is not None:
                yield json.dumps(head.body(style.chunk, [style.delta(index, fresh, ticket)], usage=None))
        if asked.include_usage:
            yield json.dumps(head.body(style.chunk, [], usage=_usage(tickets)))


async def _open(asked: Asked, head: Head, service: Service, stack: contextlib.AsyncExitStack) -> list[Ticket]:
    """Put every prompt to the scheduler; a single one keeps the answer's id, so that it can be aborted by it."""
    rids = [head.rid] if len(asked.prompts) == 1 else [None] * len(asked.prompts)
    return [
        await stack.enter_async_context(service.open(prompt, asked.sampling, rid=rid, streaming=asked.stream))
        for prompt, rid in zip(asked.prompts, rids, strict=True)
    ]


def _usage(tickets: Sequence[Ticket]) -> Json:
    """Return the tokens that the answer took."""
    prompt = sum(len(ticket.generation.prompt) for ticket in tickets)
    completion = sum(len(ticket.tokens) for ticket in tickets)
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
    }


def _ending(ticket: Ticket) -> Json:
    """Return how a choice ended; nulls while it runs."""
    reason = None if ticket.finish is None else ticket.finish.value
    return {"finish_reason": reason, "matched_stop": ticket.matched if ticket.finish is FinishReason.STOP else None}


def _completion_choice(index: int, ticket: Ticket) -> Json:
    """Return a finished choice of /v1/completions."""
    return {"index": index, "text": ticket.text, "logprobs": None, **_ending(ticket)}


def _completion_delta(index: int, fresh: str, ticket: Ticket) -> Json:
    """Return a chunk's choice of /v1/completions."""
    return {"index": index, "text": fresh, "logprobs": None, **_ending(ticket)}


def _chat_choice(index: int, ticket: Ticket) -> Json:
    """Return a finished choice of /v1/chat/completions."""
    message = {"role": "assistant", "content": ticket.text, "reasoning_content": None, "tool_calls": None}
    return {"index": index, "message": message, "logprobs": None, **_ending(ticket)}


def _chat_delta(index: int, fresh: str, ticket: Ticket) -> Json:
    """Return a chunk's choice of /v1/chat/completions."""
    return {"index": index, "delta": _delta(None, fresh), "logprobs": None, **_ending(ticket)}


def _chat_opening(index: int) -> Json:
    """Return the choice of the first chunk: the role alone."""
    return {
        "index": index,
        "delta": _delta("assistant", ""),
        "logprobs": None,
        "finish_reason": None,
        "matched_stop": None,
    }


def _delta(role: str | None, content: str) -> Json:
    """Return a chat delta."""
    return {"role": role, "content": content, "reasoning_content": None, "tool_calls": None}


COMPLETIONS = Style(
    whole="text_completion",
    chunk="text_completion",
    read=openai_read.completion,
    choice=_completion_choice,
    opening=None,
    delta=_completion_delta,
)
CHAT = Style(
    whole="chat.completion",
    chunk="chat.completion.chunk",
    read=openai_read.chat,
    choice=_chat_choice,
    opening=_chat_opening,
    delta=_chat_delta,
)
