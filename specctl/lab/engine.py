"""Continuous batching: requests join between two steps, every step prefills or decodes once, finished ones leave.

The server calls this from one thread; it knows no HTTP, clock or log, and the algo may change between any two steps.
"""

from __future__ import annotations

import random
from collections import deque

from specctl.lab import algos, tracing
from specctl.lab.batch import Batch, Request
from specctl.lab.models import Models, load_models
from specctl.lab.sampling import Chooser
from specctl.lab.seam import RIGHT, Seam
from specctl.lab.stopping import StopWatch, ending_tokens
from specctl.lab.types import Emission, Generation, Mode, StepReport, Verify

__all__ = ["Engine", "load_models"]

# One prefill iteration takes waiting requests up to this many prompt tokens, and always at least one request.
PREFILL_TOKENS = 1024


class Engine:
    """Decodes requests with one algo at a time."""

    def __init__(
        self,
        models: Models,
        *,
        mode: Mode,
        max_running: int = 8,
        context_length: int = 2048,
        seed: int = 0,
        seam: Seam = RIGHT,
        traces: bool = False,
    ) -> None:
        """Reserve room for `max_running` requests of `context_length` tokens; raise ValueError for a mode that cannot run.

        `seed` feeds the seeds of requests that bring none. With `traces` each verify tells its walk.
        """
        longest = models.target.config.max_position_embeddings
        if not 1 <= context_length <= longest:
            raise ValueError(f"context_length is {context_length}, expected 1 to {longest}")
        if max_running < 1:
            raise ValueError(f"max_running is {max_running}, expected at least 1")
        self._models = models
        self._max_running = max_running
        self._context_length = context_length
        self._random = random.Random(seed)
        self._waiting: deque[Generation] = deque()
        self._seam = seam
        self._traces = traces
        self._batch = Batch(models, max_running=max_running, context_length=context_length, seam=seam)
        self.configure(mode)

    @property
    def mode(self) -> Mode:
        """Return the algo in force, every knob set."""
        return self._mode

    @property
    def running(self) -> int:
        """Return how many requests hold a row."""
        return len(self._batch.requests)

    @property
    def waiting(self) -> int:
        """Return how many requests are queued."""
        return len(self._waiting)

    @property
    def used_tokens(self) -> int:
        """Return how many tokens the running requests keep in the target's cache."""
        return int(self._batch.lengths.sum())

    @property
    def capacity_tokens(self) -> int:
        """Return how many tokens the cache can hold."""
        return self._max_running * self._context_length

    def configure(self, mode: Mode) -> None:
        """Change algo and knobs from the next step on, running requests go on; raise ValueError and change nothing if refused."""
        complete = algos.complete(mode, self._models)
        self._decoder = algos.ALGOS[complete.algo].decoder(complete.knobs, self._seam)
        self._mode = complete

    def add(self, generation: Generation) -> None:
        """Queue a request; raise ValueError for a prompt that is empty, too long or not made of this model's tokens."""
        if not generation.prompt:
            raise ValueError("the prompt is empty")
        if len(generation.prompt) >= self._context_length:
            raise ValueError(
                f"the prompt has {len(generation.prompt)} tokens, the context holds {self._context_length}"
            )
        if not all(0 <= token < self._models.target.config.vocab_size for token in generation.prompt):
            raise ValueError("the prompt holds a token outside the vocabulary")
        self._waiting.append(generation)

    def abort(self, rid: str) -> bool:
        """Forget a request, queued or running; return whether there was one."""
        for generation in self._waiting:
            if generation.rid == rid:
                self._waiting.remove(generation)
                return True
        for row, request in enumerate(self._batch.requests):
            if request.generation.rid == rid:
                self._batch.remove(row)
                return True
        return False

    def abort_all(self) -> tuple[str, ...]:
        """Forget every request and return their ids, running ones first."""
        running = tuple(request.generation.rid for request in self._batch.requests)
        waiting = tuple(generation.rid for generation in self._waiting)
        for rid in running + waiting:
            self.abort(rid)
        return running + waiting

    def step(self) -> StepReport:
        """Prefill waiting requests if there is room, else decode once; with nothing to do the report is empty."""
        if self._waiting and self.running < self._max_running:
            return self._prefill()
        if self.running:
            return self._decode()
        return StepReport(emissions=())

    def _prefill(self) -> StepReport:
        """Admit requests first in, first out; each emits its first token."""
        emissions: list[Emission] = []
        tokens = 0
        while self._waiting and self.running < self._max_running:
            following = len(self._waiting[0].prompt)
            if emissions and tokens + following > PREFILL_TOKENS:
                break
            request = self._request(self._waiting.popleft())
            first = self._batch.prefill(request)
            tokens += following
            emission = _emit(request, (first,))
            emissions.append(emission)
            if emission.finish is not None:
                self._batch.remove(self.running - 1)
        return StepReport(
            emissions=tuple(emissions),
            prefilled_requests=len(emissions),
            prefilled_tokens=tokens,
            forward_tokens=tokens,
        )

    def _decode(self) -> StepReport:
        """Run one iteration of the algo and let finished requests leave."""
        iteration = self._decoder.decode(self._batch)
        emissions: list[Emission] = []
        verifies: list[Verify] = []
        verified = iteration.verified if self._traces else None
        for row, (request, block) in enumerate(zip(self._batch.requests, iteration.blocks, strict=True)):
            emission = _emit(request, block.tokens)
            emissions.append(emission)
            if block.nodes is not None:
                verifies.append(
                    Verify(
                        rid=emission.rid,
                        nodes=block.nodes,
                        accepted_drafts=block.accepted_drafts,
                        accepted_depth=block.accepted_drafts,
                        committed=len(emission.tokens),
                        walk=None if verified is None else tracing.walk_of(verified, row),
                    )
                )
        for row in reversed(range(self.running)):
            if emissions[row].finish is not None:
                self._batch.remove(row)
        return StepReport(emissions=tuple(emissions), verifies=tuple(verifies), forward_tokens=iteration.forward_tokens)

    def _request(self, generation: Generation) -> Request:
        """Make a request's running state."""
        sampling, eos = generation.sampling, self._models.target.config.eos_token_id
        drawn = self._random.getrandbits(63)
        chooser = Chooser(
            sampling=sampling,
            seed=drawn if sampling.seed is None else sampling.seed,
            ending_tokens=ending_tokens(sampling, eos),
        )
        room = self._context_length - len(generation.prompt)
        limit = self._seam.limit(min(sampling.max_new_tokens, room))
        watch = StopWatch(sampling, limit=limit, eos_token_id=eos, tokenizer=self._models.tokenizer)
        return Request(generation=generation, chooser=chooser, watch=watch)


def _emit(request: Request, block: tuple[int, ...]) -> Emission:
    """Cut a block where the request ends and keep what counts."""
    cut, before = request.watch.cut(block), len(request.tokens)
    request.tokens.extend(cut.tokens)
    rid = request.generation.rid
    return Emission(rid=rid, tokens=cut.tokens, finish=cut.finish, matched=cut.matched, before=before)
