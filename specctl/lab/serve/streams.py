"""Streamed answers (server-sent events) and clients that hang up, for every route that generates."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse

from specctl.lab.serve.ticket import Ticket

DONE = "data: [DONE]\n\n"
T = TypeVar("T")


async def open_stream(events: AsyncIterator[str]) -> StreamingResponse:
    """Return a streamed answer, having waited for its first event, so that a refusal can still choose the status."""
    first = await anext(events)

    async def lines() -> AsyncIterator[str]:
        async with contextlib.aclosing(events):  # type: ignore[type-var]  # every caller passes an async generator
            yield f"data: {first}\n\n"
            async for event in events:
                yield f"data: {event}\n\n"
            yield DONE

    return StreamingResponse(lines(), media_type="text/event-stream")


async def changes(tickets: Sequence[Ticket]) -> AsyncIterator[int]:
    """Yield a ticket's place each time it has changed, until all have ended; an ended ticket's place comes once."""
    queue: asyncio.Queue[int | BaseException | None] = asyncio.Queue()

    async def watch(index: int) -> None:
        try:
            async for _ in tickets[index].changes():
                queue.put_nowait(index)
            queue.put_nowait(None)
        except Exception as error:  # noqa: BLE001  # it belongs to the consumer
            queue.put_nowait(error)

    watchers = [asyncio.create_task(watch(index)) for index in range(len(tickets))]
    left, told = len(watchers), set[int]()
    try:
        while left:
            news = await queue.get()
            if isinstance(news, BaseException):
                raise news
            if news is None:
                left -= 1
            elif news not in told:
                told |= {news} if tickets[news].finish is not None else set()
                yield news
    finally:
        for watcher in watchers:
            watcher.cancel()


async def unless_gone(request: Request, work: Coroutine[object, object, T]) -> T:
    """Return the work's result, or give it up as soon as the client has hung up (raises ClientDisconnect)."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_hang_up(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _hang_up(request: Request) -> None:
    """Return when the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        continue
