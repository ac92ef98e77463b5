"""What the trees did: a line in the log every so many steps, and series for Prometheus.

Nodes include the root. An accepted depth is the accepted drafts: a path holds one node a depth. A commit is those and one token
more, but for the step with which a request ends: of that, what it was given. Sums are of one setting of the knobs at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

logger = logging.getLogger(__name__)

NEVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One verify pass as it was begun: its requests, the knobs, nodes a request (root included), seconds to build the trees."""

    requests: int
    budget: int
    topk: int
    nodes: int
    build_s: float


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


class Meter:
    """Counts passes as they are settled; a line every `every` passes of one setting of the knobs, `publish` after each pass."""

    def __init__(self, every: int, publish: Callable[[Pass, Sums], None]) -> None:
        self._every = every
        self._publish = publish
        self._windows: dict[tuple[int, int], Sums] = {}

    def settle(self, begun: Pass, accepted: Sequence[int], committed: Sequence[int]) -> None:
        """Count a pass, with accepted drafts and committed tokens of each request that still ran when it came back."""
        sums = Sums(
            steps=1,
            verifies=len(accepted),
            nodes=begun.nodes * len(accepted),
            accepted=sum(accepted),
            committed=sum(committed),
            build_s=begun.build_s,
        )
        self._publish(begun, sums)
        knobs = begun.budget, begun.topk
        window = self._windows.setdefault(knobs, Sums())
        window.add(sums)
        if window.steps >= self._every and window.verifies:
            logger.info(line(begun, self._windows.pop(knobs)))


def line(begun: Pass, window: Sums) -> str:
    """Return the metrics of a window that ended with that pass; something was verified in it."""
    return (
        f"DDTREE metrics: bs={begun.requests} budget={begun.budget} "
        f"avg_actual_nodes={window.nodes / window.verifies:.2f} avg_accepted_drafts={window.accepted / window.verifies:.2f} "
        f"avg_commit_len={window.committed / window.verifies:.2f} avg_accepted_depth={window.accepted / window.verifies:.2f} "
        f"topk={begun.topk} verify_steps={window.steps} build_ms={1000 * window.build_s / window.steps:.3f}"
    )


class Series:
    """The same sums as counters, and the knobs of the last pass as gauges, on the engine's own /metrics."""

    def __init__(self, model: str) -> None:
        from prometheus_client import Counter, Gauge

        labels = {"model_name": model}
        names = tuple(labels)
        self._labels = labels
        self._gauges = {
            name: Gauge(f"ddtree_{name}", text, names, multiprocess_mode="mostrecent")
            for name, text in (
                ("budget", "Nodes besides the root that the last pass might draft"),
                ("topk", "Alternatives a depth of the last pass"),
            )
        }
        self._counters = {
            field: Counter(f"ddtree_{name}", text, names)
            for field, name, text in (
                ("steps", "verify_passes", "Verify passes"),
                ("verifies", "verifies", "Verify passes, each counted once a request"),
                ("nodes", "nodes", "Nodes of the trees, roots included"),
                ("accepted", "accepted_drafts", "Drafts that the target agreed with"),
                ("committed", "committed_tokens", "Tokens that requests were given by verify passes"),
                ("build_s", "build_seconds", "Time that the host took to build the trees"),
            )
        }

    def publish(self, begun: Pass, sums: Sums) -> None:
        """Add a pass."""
        for name, gauge in self._gauges.items():
            gauge.labels(**self._labels).set(getattr(begun, name))
        for field, counter in self._counters.items():
            counter.labels(**self._labels).inc(getattr(sums, field))


def unpublished(_begun: Pass, _sums: Sums) -> None:
    """Publish nothing: of a server without metrics, and of all ranks but the first."""
