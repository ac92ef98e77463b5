"""Watching several tickets at once."""

from __future__ import annotations

import asyncio

import pytest

from specctl.lab.serve import streams
from specctl.lab.serve.scheduler import Delta, Refusal
from specctl.lab.serve.ticket import QueueFullError
from specctl.lab.types import FinishReason
from tests.unit.lab.serve.test_ticket import delta, ticket


def test_an_end_that_overtakes_is_told_once() -> None:
    """When a ticket ends before the consumer looks, its end is told once, and the others go on."""

    async def watch() -> list[int]:
        first, second = ticket(), ticket()
        seen = []
        first.feed(delta("a"))
        async for index in streams.changes([first, second]):
            seen.append(index)
            if len(seen) == 1:
                first.feed(delta("b"))
                await asyncio.sleep(0)
                first.feed(delta("c", finish=FinishReason.LENGTH))
                await asyncio.sleep(0)
                second.feed(delta("z", finish=FinishReason.LENGTH))
        return seen

    assert sorted(asyncio.run(watch())) == [0, 0, 1]


def test_a_refusal_ends_the_watch() -> None:
    """A refused ticket raises in the consumer."""

    async def watch() -> None:
        made = ticket()
        made.feed(Delta(at=1.0, refused=Refusal.QUEUE_FULL))
        async for _ in streams.changes([made]):
            pytest.fail("a refused request has no changes")

    with pytest.raises(QueueFullError):
        asyncio.run(watch())
