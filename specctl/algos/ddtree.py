"""DDTree: a tree of drafts from the same drafter's per-position distributions, best first (arXiv 2604.12989)."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.algos.types import Algo, Knob, Shape


def _deepest_path(knobs: Mapping[str, int]) -> int | None:
    """Return min(budget, block - 1): no path is longer than the block, nor than the tree has nodes."""
    limits = [knobs[name] - offset for name, offset in (("tree_budget", 0), ("block_size", 1)) if name in knobs]
    return min(limits) if limits else None


def _nodes(knobs: Mapping[str, int]) -> int | None:
    budget = knobs.get("tree_budget")
    return None if budget is None else 1 + budget


ALGO = Algo(
    name="ddtree",
    shape=Shape.TREE,
    summary="a tree of drafts, verified in one pass with an ancestor-only mask",
    knobs=(
        Knob(name="block_size", low=2, high=64, meaning="tokens of a block: the anchor and the depths below it"),
        Knob(name="tree_budget", low=1, high=1024, meaning="nodes of the tree besides its root"),
        Knob(name="topk_cap", low=1, high=64, meaning="most alternatives that one depth may offer"),
    ),
    max_drafts=_deepest_path,
    checked=_nodes,
)
