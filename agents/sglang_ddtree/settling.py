"""Where the scheduler settles a step: only there is it known what each request was given, and nothing waits for it.

A result carries its step from the worker to here; metrics and trace are told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from sglang_ddtree import engine, metrics, trace, tree_torch

PROCESSOR = "sglang.srt.managers.scheduler_components.batch_result_processor.SchedulerBatchResultProcessor"
CARRIED = "ddtree_step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a trace wants to see of a pass, still on the device."""

    lengths: torch.Tensor
    trees: tree_torch.Trees
    picks: torch.Tensor
    walked: tree_torch.Walk

    def rows(self) -> Iterator[trace.Verified]:
        """Return each request's part; this waits for the device."""
        trees = self.trees
        at = tree_torch.positions(trees, self.lengths)
        table = (
            self.lengths,
            trees.real,
            trees.tokens,
            trees.parents,
            at,
            self.picks,
            self.walked.path,
            self.walked.accepted,
        )
        columns = [each.tolist() for each in table]
        for prefix, real, tokens, parents, positions, picks, path, accepted in zip(*columns, strict=True):
            size = sum(real)
            yield trace.Verified(
                prefix=prefix,
                tokens=tokens[:size],
                parents=parents[:size],
                positions=positions[:size],
                target=picks[:size],
                path=path[: accepted + 1],
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a result carries: the pass as it was begun and, for a trace, what it saw."""

    begun: metrics.Pass
    shown: Shown | None


class Book:
    """Where steps are entered: counts always, the trace where one is asked for."""

    def __init__(self, meter: metrics.Meter, traced: trace.Trace | None, block: int) -> None:
        self._meter = meter
        self.traced = traced
        self._block = block
        self._steps = 0

    def prompts(self, read: list[tuple[engine.Request, int]]) -> None:
        """Enter prompts: each request and how many tokens were read for it."""
        self._steps += 1
        for request, prompt in read:
            if self.traced is not None:
                self.traced.prefill(self._steps, _ending(request, len(request.output_ids) - 1), prompt)
        self._end_trace()

    def verified(self, step: Step, settled: list[tuple[int, engine.Request, int, int]]) -> None:
        """Enter a pass: for each request that still ran its row, itself, its tokens before the pass, and accepted drafts."""
        self._steps += 1
        endings = [_ending(request, before) for _, request, before, _ in settled]
        self._meter.settle(step.begun, [accepted for *_, accepted in settled], [len(one.committed) for one in endings])
        if self.traced is None or step.shown is None:
            return
        rows = list(step.shown.rows())
        settings = trace.Settings(block=self._block, budget=step.begun.budget, topk=step.begun.topk)
        for (row, *_), ending in zip(settled, endings, strict=True):
            self.traced.verify(self._steps, ending, rows[row], settings)
        self._end_trace()

    def _end_trace(self) -> None:
        """Forget a trace that ended: what it would be told costs a wait for the device at each step."""
        if self.traced is not None and self.traced.ended:
            self.traced = None


def _ending(request: engine.Request, before: int) -> trace.Ending:
    reason = request.finished_reason.to_json() if request.finished_reason is not None else {}
    return trace.Ending(
        rid=request.rid, committed=list(request.output_ids_through_stop)[before:], finish=reason.get("type")
    )


def register() -> None:
    """Have the scheduler hand steps over when it settles them."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    HookRegistry.register(f"{PROCESSOR}.process_batch_result_decode", _decoded, HookType.AROUND)
    HookRegistry.register(f"{PROCESSOR}.process_batch_result_prefill", _prefilled, HookType.AROUND)


def _book(processor: engine.Processor) -> Book | None:
    found = getattr(processor.draft_worker, "book", None)
    return found if isinstance(found, Book) else None


def _decoded(
    settle: Callable[..., object], processor: engine.Processor, batch: engine.Batch, result: engine.Result
) -> object:
    step, book = getattr(result, CARRIED, None), _book(processor)
    if step is None or book is None:
        return settle(processor, batch, result)
    running = [
        (row, request, len(request.output_ids))
        for row, request in enumerate(batch.reqs)
        if not (request.is_retracted or request.finished())
    ]
    answer = settle(processor, batch, result)
    accepted = result.num_correct_drafts_per_req_cpu
    book.verified(step, [(row, request, before, accepted[row]) for row, request, before in running])
    return answer


def _prefilled(
    settle: Callable[..., object], processor: engine.Processor, batch: engine.Batch, result: engine.Result
) -> object:
    book = _book(processor)
    if book is None or book.traced is None:
        return settle(processor, batch, result)
    reading = [(request, len(request.output_ids)) for request in batch.reqs]
    answer = settle(processor, batch, result)
    # A prompt that is read in pieces gives no token before its last one.
    read = [(request, before) for request, before in reading if len(request.output_ids) > before]
    book.prompts([(request, len(request.origin_input_ids) + before) for request, before in read])
    return answer
