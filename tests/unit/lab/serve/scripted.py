"""A decoder that follows a script, for tests of the scheduler alone; the tests of the server use the real one."""

from __future__ import annotations

from collections import deque

from specctl.lab.types import Emission, FinishReason, Generation, Mode, StepReport, Verify

TREE = Mode(algo="ddtree", knobs={"block_size": 8, "tree_budget": 7, "topk_cap": 4})


class ScriptedDecoder:
    """Prefills one request a step, then commits `width` tokens a step to each until it has its max_new_tokens."""

    def __init__(self, *, width: int = 3, max_running: int = 2, mode: Mode = TREE, capacity: int = 1000) -> None:
        self.mode = mode
        self.capacity_tokens = capacity
        self.width = width
        self.refuse: str | None = None
        self.fail: Exception | None = None
        self._max_running = max_running
        self._queue: deque[Generation] = deque()
        self._batch: dict[str, tuple[Generation, int]] = {}

    @property
    def running(self) -> int:
        return len(self._batch)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def used_tokens(self) -> int:
        return sum(len(generation.prompt) + done for generation, done in self._batch.values())

    def add(self, generation: Generation) -> None:
        self._queue.append(generation)

    def abort(self, rid: str) -> bool:
        kept = deque(generation for generation in self._queue if generation.rid != rid)
        known = len(kept) < len(self._queue) or rid in self._batch
        self._queue = kept
        self._batch.pop(rid, None)
        return known

    def configure(self, mode: Mode) -> None:
        if self.refuse is not None:
            raise ValueError(self.refuse)
        self.mode = mode

    def step(self) -> StepReport:
        if self.fail is not None:
            raise self.fail
        if self._queue and self.running < self._max_running:
            return self._prefill(self._queue.popleft())
        emissions = tuple(self._advance(rid) for rid in tuple(self._batch))
        return StepReport(emissions=emissions, verifies=self._verifies(emissions), forward_tokens=8 * len(emissions))

    def _prefill(self, generation: Generation) -> StepReport:
        finish = FinishReason.LENGTH if generation.sampling.max_new_tokens == 1 else None
        if finish is None:
            self._batch[generation.rid] = (generation, 1)
        emission = Emission(rid=generation.rid, tokens=(100,), finish=finish)
        return StepReport(emissions=(emission,), prefilled_requests=1, prefilled_tokens=len(generation.prompt))

    def _advance(self, rid: str) -> Emission:
        generation, done = self._batch[rid]
        tokens = tuple(range(100 + done, 100 + min(done + self.width, generation.sampling.max_new_tokens)))
        ended = done + len(tokens) >= generation.sampling.max_new_tokens
        if ended:
            del self._batch[rid]
        else:
            self._batch[rid] = (generation, done + len(tokens))
        return Emission(rid=rid, tokens=tokens, finish=FinishReason.LENGTH if ended else None)

    def _verifies(self, emissions: tuple[Emission, ...]) -> tuple[Verify, ...]:
        if self.mode.algo == "none":
            return ()
        drafts = self.width - 1
        return tuple(
            Verify(
                rid=emission.rid, nodes=8, accepted_drafts=drafts, accepted_depth=drafts, committed=len(emission.tokens)
            )
            for emission in emissions
        )
