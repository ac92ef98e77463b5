"""The running server's parts in one place, and the one way to put a request to the scheduler; called by every route.

Lives in the event loop's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from specctl.lab.serve.answers import BadRequestError
from specctl.lab.serve.ledger import Ledger
from specctl.lab.serve.lifecycle import Lifecycle
from specctl.lab.serve.log import logger
from specctl.lab.serve.readings import Footprint, StartupTimes
from specctl.lab.serve.resolve import Launch
from specctl.lab.serve.scheduler import Delta, PauseMode, Scheduler
from specctl.lab.serve.ticket import Ticket
from specctl.lab.tokenizer import Tokenizer
from specctl.lab.types import FinishReason, Generation, Sampling

ABORT_POLL_S = 0.05
"""How often a pause in mode abort looks whether every request has gone (1 s in SGLang)."""
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Service:
    """What the routes work with."""

    launch: Launch
    tokenizer: Tokenizer
    scheduler: Scheduler
    footprint: Footprint
    startup: StartupTimes
    ledger: Ledger = field(default_factory=Ledger)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    pid: int = field(default_factory=os.getpid)
    created: int = field(default_factory=lambda: int(time.time()))
    accept_thresholds: dict[str, float] = field(
        default_factory=lambda: {"speculative_accept_threshold_single": 1.0, "speculative_accept_threshold_acc": 1.0}
    )
    pp_max_micro_batch_size: int | float | None = None
    _open: dict[str, Ticket] = field(default_factory=dict)
    _unpaused: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Begin unpaused."""
        self._unpaused.set()

    @property
    def open_rids(self) -> tuple[str, ...]:
        """Return the ids of the clients' requests that have not ended."""
        return tuple(self._open)

    def check(self, prompt: Sequence[int], sampling: Sampling) -> None:
        """Raise BadRequestError for a prompt or an answer that the context cannot hold."""
        limit = self.launch.context_length
        if not prompt:
            raise BadRequestError("The input is empty.")
        if any(not 0 <= token < self.tokenizer.vocab_size for token in prompt):
            raise BadRequestError(f"input_ids must lie in [0, {self.tokenizer.vocab_size}).")
        if len(prompt) > self.launch.max_input_tokens:
            raise BadRequestError(
                f"The input ({len(prompt)} tokens) is longer than the model's context length ({limit} tokens)."
            )
        total = len(prompt) + sampling.max_new_tokens
        if total > limit:
            answer = sampling.max_new_tokens
            raise BadRequestError(
                f"Requested token count exceeds the model's maximum context length of {limit} tokens. "
                f"You requested a total of {total} tokens: "
                f"{len(prompt)} tokens from the input messages and {answer} tokens for the completion. "
                "Please reduce the number of tokens in the input messages or the completion to fit within the limit."
            )

    @contextlib.asynccontextmanager
    async def open(
        self, prompt: Sequence[int], sampling: Sampling, *, rid: str | None = None, streaming: bool = False
    ) -> AsyncIterator[Ticket]:
        """Put a request to the scheduler and give its ticket; a request that is left unfinished is aborted."""
        self.check(prompt, sampling)
        generation = Generation(rid=rid or uuid.uuid4().hex, prompt=tuple(prompt), sampling=sampling)
        if generation.rid in self._open:
            raise BadRequestError(f"Duplicate request ID detected: {generation.rid}")
        ticket = Ticket(generation, self.tokenizer, streaming=streaming)
        self._open[generation.rid] = ticket
        try:
            await self._unpaused.wait()
            self.scheduler.submit(generation, self._deliverer(ticket))
            yield ticket
        finally:
            self._open.pop(generation.rid, None)
            if ticket.finish is None and ticket.refused is None:
                self.scheduler.call(lambda: self.scheduler.abort(generation.rid))

    def probe(self) -> None:
        """Send /health's one-token request; a busy scheduler gives signs of life of its own and drops it."""
        sampling = Sampling(max_new_tokens=1, ignore_eos=True)
        generation = Generation(rid=f"HEALTH_CHECK_{uuid.uuid4().hex}", prompt=(0,), sampling=sampling)
        self.scheduler.submit(generation, lambda _: None, only_when_idle=True)

    async def ask(self, act: Callable[[], T]) -> T:
        """Run something in the scheduler between two steps; waits for as long as the scheduler hangs."""
        future: Future[T] = self.scheduler.call(act)
        return await asyncio.wrap_future(future)

    async def pause(self, mode: PauseMode) -> None:
        """Stop decoding; requests that come now wait."""
        self.lifecycle.paused = True
        self._unpaused.clear()
        if mode is PauseMode.ABORT:
            await self.abort_submitted()
        await self.ask(lambda: self.scheduler.pause(mode))

    async def abort_submitted(self) -> None:
        """End the requests that the scheduler has, leaving those that wait at the pause."""
        while not await self.ask(self.scheduler.is_idle):
            await self.ask(self.scheduler.abort_all)
            await asyncio.sleep(ABORT_POLL_S)

    async def resume(self) -> None:
        """Decode again."""
        await self.ask(self.scheduler.resume)
        self.lifecycle.paused = False
        self._unpaused.set()

    def _deliverer(self, ticket: Ticket) -> Callable[[Delta], None]:
        """Return what the scheduler calls with each delta: it hands over to the event loop."""
        loop = asyncio.get_running_loop()

        def deliver(delta: Delta) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has closed: nobody is left to tell
                loop.call_soon_threadsafe(self._take, ticket, delta)

        return deliver

    def _take(self, ticket: Ticket, delta: Delta) -> None:
        """Feed a ticket and keep the books."""
        gap = ticket.feed(delta)
        if gap is not None and gap > 0:
            self.ledger.gap(gap, len(delta.tokens))
        if delta.finish is not None:
            self.ledger.finish(ticket.finished())
            if delta.finish is FinishReason.ABORT:
                logger.debug("Request %s was aborted", ticket.generation.rid)


@contextlib.contextmanager
def counted(ledger: Ledger, endpoint: str, method: str) -> Iterator[None]:
    """Count an HTTP request as active while it is served."""
    ledger.http_requests[endpoint, method] += 1
    ledger.http_active[endpoint, method] += 1
    try:
        yield
    finally:
        ledger.http_active[endpoint, method] -= 1
