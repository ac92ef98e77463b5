"""What the trees did: a line in the log every so many steps, and series for Prometheus.

Counts are taken where the scheduler settles a step, of requests that still run, so that nothing waits for the device. Nodes
include the root. An accepted depth is the accepted drafts: a path holds one node a depth. A commit is those and one token more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields

from sglang_ddtree import engine

logger = logging.getLogger(__name__)

PROCESSOR = "sglang.srt.managers.scheduler_components.batch_result_processor.SchedulerBatchResultProcessor"
# A result carries its step under this name from the worker to the scheduler's bookkeeping.
CARRIED = "ddtree_step"
NEVER = 2**62


@dataclass(slots=True, kw_only=True)
class Sums:
    """Sums over verify passes: `steps` passes, and over their requests what was drafted, accepted and committed."""

    steps: int = 0
    verifies: int = 0
    nodes: int = 0
    accepted: int = 0
    committed: int = 0
    build_s: float = 0.0

    def add(self, other: Sums) -> None:
        """Add another's sums."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One verify pass as it was begun: knobs, nodes a request (root included), and seconds the host took to build the trees.

    `settle` is called with the accepted drafts of each of its requests that still ran when it came back.
    """

    requests: int
    budget: int
    topk: int
    nodes: int
    build_s: float
    settle: Callable[[Step, list[int]], None]


class Meter:
    """The sums since the last line and since the start; a line every `every` steps, and `publish` after each."""

    def __init__(self, every: int, publish: Callable[[Step, Sums], None]) -> None:
        self._every = every
        self._publish = publish
        self._window = Sums()

    def settle(self, step: Step, accepted: list[int]) -> None:
        """Count a step."""
        verifies = len(accepted)
        sums = Sums(
            steps=1,
            verifies=verifies,
            nodes=step.nodes * verifies,
            accepted=sum(accepted),
            committed=sum(accepted) + verifies,
            build_s=step.build_s,
        )
        self._publish(step, sums)
        self._window.add(sums)
        if self._window.steps >= self._every:
            if self._window.verifies:
                logger.info(line(step, self._window))
            self._window = Sums()


def line(step: Step, window: Sums) -> str:
    """Return the metrics of a window that ended with that step; something was verified in it."""
    return (
        f"DDTREE metrics: bs={step.requests} budget={step.budget} "
        f"avg_actual_nodes={window.nodes / window.verifies:.2f} avg_accepted_drafts={window.accepted / window.verifies:.2f} "
        f"avg_commit_len={window.committed / window.verifies:.2f} avg_accepted_depth={window.accepted / window.verifies:.2f} "
        f"topk={step.topk} verify_steps={window.steps} build_ms={1000 * window.build_s / window.steps:.3f}"
    )


class Series:
    """The same sums as counters, and the knobs of the last step as gauges, on the engine's own /metrics."""

    def __init__(self, model: str) -> None:
        from prometheus_client import Counter, Gauge

        labels = {"model_name": model}
        self._budget = Gauge("ddtree_budget", "Budget of the last step", labels, multiprocess_mode="mostrecent")
        self._topk = Gauge(
            "ddtree_topk", "Alternatives a depth of the last step", labels, multiprocess_mode="mostrecent"
        )
        self._counters = {
            "steps": Counter("ddtree_verify_steps", "Verify passes", labels),
            "verifies": Counter("ddtree_verifies", "Verify passes, each counted once a request", labels),
            "nodes": Counter("ddtree_nodes", "Nodes of the trees, roots included", labels),
            "accepted": Counter("ddtree_accepted_drafts", "Drafts that the target agreed with", labels),
            "committed": Counter("ddtree_committed_tokens", "Accepted drafts and one token more a verify", labels),
            "build_s": Counter("ddtree_build_seconds", "Time the host took to build the trees", labels),
        }
        self._labels = labels

    def publish(self, step: Step, sums: Sums) -> None:
        """Add a step."""
        self._budget.labels(**self._labels).set(step.budget)
        self._topk.labels(**self._labels).set(step.topk)
        for name, counter in self._counters.items():
            counter.labels(**self._labels).inc(getattr(sums, name))


def unpublished(_step: Step, _sums: Sums) -> None:
    """Publish nothing: of a server without metrics, and of all ranks but the first."""


def register() -> None:
    """Have the scheduler hand each step over when it settles it."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    HookRegistry.register(f"{PROCESSOR}._resolve_spec_v2_tokens", _settled, HookType.AROUND)


def _settled(original: Callable[..., object], processor: object, result: engine.Result, batch: engine.Batch) -> object:
    step = getattr(result, CARRIED, None)
    if step is None:
        return original(processor, result, batch)
    running = [not (request.is_retracted or request.finished()) for request in batch.reqs]
    tokens = original(processor, result, batch)
    accepted = zip(result.num_correct_drafts_per_req_cpu, running, strict=True)
    step.settle(step, [count for count, runs in accepted if runs])
    return tokens
