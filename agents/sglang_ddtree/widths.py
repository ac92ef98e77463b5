"""A verify pass of each width that is wanted often, captured as graphs of its own: a small tree then costs a small pass.

The engine captures one width, the widest. Another has its own attention and its own graphs, put in the engine's place for the
length of a pass. Without graphs every width runs as it is. Not yet run on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from sglang_ddtree.knobs import Knobs, Limits


class Runner(Protocol):
    """The target's model runner: its attention, and the graphs of its decode passes, None where there are none."""

    attn_backend: object
    decode_cuda_graph_runner: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """Attention and graphs of one width."""

    attention: object
    graphs: object


def wanted(limits: Limits, held: Knobs) -> tuple[int, ...]:
    """Return the widths worth graphs of their own, widest first: of what was named, of a chain, and of no draft."""
    named = {setting.nodes(limits.block_size) for setting in held.settings()}
    named |= {budget + 1 for budget in limits.graph_budgets}
    return tuple(sorted((named | {1, limits.block_size}) - {limits.width}, reverse=True))


class Widths:
    """The widths that there are graphs for; `widest` is the engine's own."""

    def __init__(self, runner: Runner, widest: int) -> None:
        self._runner = runner
        self._widest = widest
        self._captured: dict[int, Captured] = {}

    def capture(self, widths: Iterable[int], build: Callable[[int], Captured]) -> None:
        """Capture these widths; nothing where the engine itself captured none."""
        if self._runner.decode_cuda_graph_runner is not None:
            self._captured = {width: build(width) for width in widths}

    def fitting(self, nodes: int) -> int:
        """Return the width of a pass for that many nodes: the next that was captured, or just theirs where nothing was."""
        if self._runner.decode_cuda_graph_runner is None:
            return nodes
        return min(width for width in (*self._captured, self._widest) if width >= nodes)

    @contextlib.contextmanager
    def active(self, width: int) -> Iterator[None]:
        """Have passes run with that width's attention and graphs; the engine's own come back in any case."""
        own = self._captured.get(width)
        if own is None:
            yield
            return
        before = Captured(attention=self._runner.attn_backend, graphs=self._runner.decode_cuda_graph_runner)
        self._put(own)
        try:
            yield
        finally:
            self._put(before)

    def _put(self, captured: Captured) -> None:
        self._runner.attn_backend = captured.attention
        self._runner.decode_cuda_graph_runner = captured.graphs
