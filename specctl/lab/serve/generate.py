"""SGLang's own /generate: text or token ids, one or a list, whole or streamed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from specctl.lab.serve import answers, sampling, streams
from specctl.lab.serve.answers import BadRequestError, UnknownFieldError
from specctl.lab.serve.service import Service
from specctl.lab.serve.ticket import QueueFullError, Ticket
from specctl.lab.types import Sampling

_REFUSED = (
    "input_embeds",
    "image_data",
    "audio_data",
    "video_data",
    "lora_path",
    "session_params",
    "custom_logit_processor",
    "return_hidden_states",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A /generate body, read: one prompt or several, each with its sampling and id."""

    prompts: tuple[tuple[int, ...], ...]
    samplings: tuple[Sampling, ...]
    rids: tuple[str | None, ...]
    is_batch: bool
    stream: bool


def read(body: Mapping[str, object], service: Service) -> Asked:
    """Read a body; raise BadRequestError for what cannot be served."""
    refused = next((name for name in _REFUSED if body.get(name)), None)
    if refused is not None or body.get("return_logprob"):
        raise BadRequestError(f"{refused or 'return_logprob'} is not supported by the lab engine.")
    prompts, is_batch = _prompts(body, service)
    return Asked(
        prompts=prompts,
        samplings=_samplings(body.get("sampling_params"), len(prompts)),
        rids=_rids(body.get("rid"), len(prompts), is_batch=is_batch),
        is_batch=is_batch,
        stream=body.get("stream") is True,
    )


async def answer(request: Request, service: Service) -> Response:
    """Serve a /generate request."""
    try:
        asked = read(await answers.json_object(request), service)
        for prompt, wanted in zip(asked.prompts, asked.samplings, strict=True):
            service.check(prompt, wanted)
        if asked.stream:
            return await streams.open_stream(_events(asked, service))
        return JSONResponse(await streams.unless_gone(request, _whole(asked, service)))
    except UnknownFieldError as error:
        return answers.unknown_field(str(error))
    except BadRequestError as error:
        return answers.native_error(str(error))
    except QueueFullError as error:
        return answers.queue_full(str(error))


async def _whole(asked: Asked, service: Service) -> object:
    """Return the finished answer or answers."""
    async with contextlib.AsyncExitStack() as stack:
        tickets = await _open(asked, service, stack)
        await asyncio.gather(*(ticket.ended() for ticket in tickets))
        bodies = [_body(ticket, service) for ticket in tickets]
        return bodies if asked.is_batch else bodies[0]


async def _events(asked: Asked, service: Service) -> AsyncIterator[str]:
    """Yield the growing answers; each event repeats the whole text so far, as SGLang's do."""
    async with contextlib.AsyncExitStack() as stack:
        tickets = await _open(asked, service, stack)
        async for index in streams.changes(tickets):
            body = _body(tickets[index], service)
            yield json.dumps({**body, "index": index} if asked.is_batch else body)


async def _open(asked: Asked, service: Service, stack: contextlib.AsyncExitStack) -> list[Ticket]:
    """Put every prompt to the scheduler."""
    return [
        await stack.enter_async_context(service.open(prompt, wanted, rid=rid, streaming=asked.stream))
        for prompt, wanted, rid in zip(asked.prompts, asked.samplings, asked.rids, strict=True)
    ]


def _body(ticket: Ticket, service: Service) -> dict[str, object]:
    """Return SGLang's answer for one prompt as it stands."""
    return {
        "text": ticket.text,
        "output_ids": list(ticket.tokens),
        "meta_info": ticket.meta_info(with_times=service.launch.options.enable_metrics),
    }


def _prompts(body: Mapping[str, object], service: Service) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the prompts as tokens and whether they came as a list."""
    text, ids = body.get("text"), body.get("input_ids")
    if text is not None and ids is not None:
        raise BadRequestError("Only one of text and input_ids should be provided.")
    if isinstance(text, str):
        return (tuple(service.tokenizer.encode(text)),), False
    if isinstance(text, list) and text and all(isinstance(part, str) for part in text):
        return tuple(tuple(service.tokenizer.encode(part)) for part in text), True
    if is_ids(ids):
        return (tuple(ids),), False
    if isinstance(ids, list) and ids and all(is_ids(part) for part in ids):
        return tuple(tuple(part) for part in ids), True
    raise BadRequestError("Either text, input_ids or input_embeds should be provided.")


def is_ids(value: object) -> TypeGuard[list[int]]:
    """Tell whether a value is a list of token ids."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(token, int) and not isinstance(token, bool) for token in value)
    )


def _samplings(value: object, count: int) -> tuple[Sampling, ...]:
    """Return one sampling a prompt, given as one for all or as a list."""
    each = value if isinstance(value, list) else [value] * count
    if len(each) != count:
        raise BadRequestError(f"sampling_params has {len(each)} entries for {count} prompts.")
    return tuple(sampling.read(_object(params)) for params in each)


def _object(value: object) -> Mapping[str, object]:
    """Return one prompt's sampling parameters."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequestError("sampling_params must be an object or a list of objects.")
    return value


def _rids(value: object, count: int, *, is_batch: bool) -> tuple[str | None, ...]:
    """Return one id a prompt; None lets the server choose."""
    if value is None:
        return (None,) * count
    each = value if isinstance(value, list) else [value]
    if len(each) != count or not all(isinstance(rid, str) for rid in each):
        raise BadRequestError("rid must be a string, or a list of one string a prompt for a batch.")
    if len(set(each)) != count or (isinstance(value, list) and not is_batch):
        raise BadRequestError("rid must be unique.")
    return tuple(each)
