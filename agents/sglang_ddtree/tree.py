"""The tree in plain Python: what is drafted, what may see what, and which path the target takes.

The reference that `tree_torch` must equal; small and slow on purpose. Sources: DDTree (arXiv 2604.12989) for the tree, DFlash
(arXiv 2602.06036) for the drafter that gives every branch the same distribution at a depth.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree of one request: node 0 is the root, the last token that is decided; parents come before children.

    `costs` are sums of negated log-probabilities along the path from the root; no two children of a node have one token.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    costs: tuple[float, ...]


def grow(root: int, tokens: Sequence[Sequence[int]], scores: Sequence[Sequence[float]], budget: int) -> Tree:
    """Return the `budget` most probable nodes below the root, or as many as there are.

    `tokens[d]` and `scores[d]` are the alternatives at depth d + 1 and their log-probabilities, most probable first. A path's
    probability is the product over its depths, so that a node's first child and next sibling are never more probable than
    itself: a heap of those two frontiers always has the next best node on top. Of equals, the one with the earlier parent
    comes first, then the better rank. What has no probability is not drafted.
    """
    nodes: list[tuple[float, int, int, int]] = [(0.0, 0, 0, 0)]
    heap: list[tuple[float, int, int, int]] = []

    def offer(parent: int, depth: int, rank: int) -> None:
        if depth > len(scores) or rank >= len(scores[depth - 1]):
            return
        cost = nodes[parent][0] + max(0.0, -scores[depth - 1][rank])
        if math.isfinite(cost):
            heapq.heappush(heap, (cost, parent, depth, rank))

    offer(0, 1, 0)
    while heap and len(nodes) <= budget:
        cost, parent, depth, rank = heapq.heappop(heap)
        nodes.append((cost, parent, depth, rank))
        offer(parent, depth, rank + 1)
        offer(len(nodes) - 1, depth + 1, 0)
    return Tree(
        tokens=(root, *(tokens[depth - 1][rank] for _, _, depth, rank in nodes[1:])),
        parents=tuple(parent for _, parent, _, _ in nodes),
        depths=tuple(depth for _, _, depth, _ in nodes),
        costs=tuple(cost for cost, _, _, _ in nodes),
    )


def ancestors(tree: Tree) -> list[list[bool]]:
    """Return for each node which nodes it may see: itself and those on the way to the root."""
    seen: list[list[bool]] = []
    for node, parent in enumerate(tree.parents):
        row = list(seen[parent]) if node else [False] * len(tree.parents)
        row[node] = True
        seen.append(row)
    return seen


def positions(tree: Tree, length: int) -> list[int]:
    """Return each node's place in the sequence, of which `length` tokens lie before the root."""
    return [length + depth for depth in tree.depths]


def walk(tree: Tree, pick: Callable[[int], int]) -> tuple[list[int], list[int]]:
    """Return the nodes that the target agrees with, root first, and the tokens to commit: theirs and one more.

    `pick(node)` is the token that the target puts after a node: its best one, or a draw from its distribution there. A draw
    does not depend on what was drafted, so that the tokens are distributed as if each had been drawn alone.
    """
    path, committed = [0], []
    while True:
        token = pick(path[-1])
        committed.append(token)
        children = (node for node, parent in enumerate(tree.parents) if node and parent == path[-1])
        following = next((node for node in children if tree.tokens[node] == token), None)
        if following is None:
            return path, committed
        path.append(following)
