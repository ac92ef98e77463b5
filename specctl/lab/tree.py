"""DDTree: verify the most probable tree of drafts at once and walk down it while the target agrees.

Source: DDTree, draft trees for block diffusion drafters. A drafter that fills all depths in parallel gives the same
distribution at a depth on every branch, so a path's probability is a product over depths; best-first search over summed
log-probabilities finds the tree of a given size that maximises the expected accepted length under that surrogate.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specctl.lab.batch import Batch
from specctl.lab.cache import Ints
from specctl.lab.config import MAX_BLOCK_SIZE
from specctl.lab.decoding import Block, Decoder, Iteration, KnobRange, Verified
from specctl.lab.seam import RIGHT, Seam
from specctl.lab.weights import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """A tree a row, padded to one size: node 0 is the root (the anchor), parents come before children.

    `counts` is how many nodes of each row are real; padding nodes repeat the root's token and are nobody's child.
    """

    tokens: Ints
    parents: Ints
    depths: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDecoder:
    """A tree of up to `tree_budget` nodes besides the root, `topk_cap` alternatives a depth, `block_size` - 1 deep."""

    block_size: int
    tree_budget: int
    topk_cap: int
    seam: Seam = RIGHT

    def decode(self, batch: Batch) -> Iteration:
        """Draft, verify and commit one tree a row."""
        seam = self.seam
        trees = grow(batch.anchors(), batch.propose(self.block_size), seam.budget(self.tree_budget), self.topk_cap)
        lengths = batch.lengths
        mask, positions = seam.tree_mask(lengths, trees.parents), seam.positions(lengths, trees.depths)
        logits, features = batch.verify(trees.tokens, positions, mask, features=True)
        picked = batch.pick(logits, trees.depths)
        paths, accepted = walk(trees, picked)
        walked = seam.walked(accepted)
        kept = seam.kept(walked)
        batch.commit(kept, features, paths)
        rows = zip(picked, paths, kept.tolist(), walked.tolist(), trees.counts.tolist(), strict=True)
        blocks = tuple(
            Block(tokens=tuple(row[path[: count + 1]].tolist()), nodes=nodes, accepted_drafts=drafts)
            for row, path, count, drafts, nodes in rows
        )
        verified = Verified(
            tokens=trees.tokens,
            positions=positions,
            target=picked,
            walked=walked,
            parents=trees.parents,
            paths=paths,
            counts=trees.counts,
        )
        return Iteration(blocks=blocks, forward_tokens=trees.tokens.size, verified=verified)


def grow(anchors: Ints, logits: Floats, budget: int, topk: int) -> Trees:
    """Return the best tree of each row for the drafter's logits [rows, depth, vocabulary]."""
    ranked, scores = top(logits, topk)
    shapes = [best_first(row, budget) for row in scores.tolist()]
    rows, nodes = len(anchors), max(len(shape) for shape in shapes) + 1
    parents, depths, ranks = (np.zeros((rows, nodes), dtype=np.int64) for _ in range(3))
    counts = np.array([len(shape) + 1 for shape in shapes], dtype=np.int64)
    for row, shape in enumerate(shapes):
        used = slice(1, len(shape) + 1)
        parents[row, used], depths[row, used], ranks[row, used] = np.array(shape, dtype=np.int64).T
    tokens = ranked[np.arange(rows)[:, None], np.maximum(depths - 1, 0), ranks]
    real = np.arange(nodes) < counts[:, None]
    tokens[:, 0] = anchors
    tokens = np.where(real, tokens, anchors[:, None])
    return Trees(tokens=tokens, parents=parents, depths=depths, counts=counts)


def top(logits: Floats, count: int) -> tuple[Ints, Floats]:
    """Return the `count` best tokens of each depth, best first (ties: the lower token), and their log-probabilities.

    One argmax a rank: for the few ranks a tree needs, that is several times faster than numpy's partition.
    """
    left = logits.reshape(-1, logits.shape[-1]).copy()
    every = np.arange(len(left))
    order = np.empty((len(left), count), dtype=np.int64)
    for rank in range(count):
        order[:, rank] = left.argmax(axis=-1)
        left[every, order[:, rank]] = -np.inf
    order = order.reshape(*logits.shape[:-1], count)
    best = np.take_along_axis(logits, order, axis=-1)
    total = np.log(np.exp(logits - best[..., :1]).sum(axis=-1, keepdims=True))
    return order, best - best[..., :1] - total


def best_first(scores: list[list[float]], budget: int) -> list[tuple[int, int, int]]:
    """Return (parent, depth, rank) of up to `budget` nodes, the most probable paths first.

    `scores[d]` holds depth d + 1's log-probabilities, best first. A node's first child and next sibling can only be less
    probable than it, so a heap of those two frontiers always has the next best node on top.
    """
    nodes: list[tuple[int, int, int]] = []
    heap = [(-scores[0][0], 0, 1, 0)]
    while heap and len(nodes) < budget:
        cost, parent, depth, rank = heapq.heappop(heap)
        nodes.append((parent, depth, rank))
        alternatives = scores[depth - 1]
        if rank + 1 < len(alternatives):
            heapq.heappush(heap, (cost + alternatives[rank] - alternatives[rank + 1], parent, depth, rank + 1))
        if depth < len(scores):
            heapq.heappush(heap, (cost - scores[depth][0], len(nodes), depth + 1, 0))
    return nodes


def walk(trees: Trees, picked: Ints) -> tuple[Ints, Ints]:
    """Follow the target's tokens from each root down; return the nodes passed [rows, depth], root first, and how many drafts.

    A path that ends early repeats its last node.
    """
    rows = len(trees.tokens)
    deepest = int(trees.depths.max())
    paths = np.zeros((rows, deepest + 1), dtype=np.int64)
    accepted = np.zeros(rows, dtype=np.int64)
    every, current = np.arange(rows), np.zeros(rows, dtype=np.int64)
    child = (np.arange(trees.tokens.shape[1]) < trees.counts[:, None]) & (trees.depths > 0)
    for depth in range(1, deepest + 1):
        follows = child & (trees.parents == current[:, None]) & (trees.tokens == picked[every, current][:, None])
        found = follows.any(axis=1)
        current = np.where(found, follows.argmax(axis=1), current)
        accepted += found
        paths[:, depth:] = current[:, None]
        if not found.any():
            break
    return paths, accepted


class Tree:
    """Algo ddtree."""

    name = "ddtree"
    drafts = True
    knobs: Mapping[str, KnobRange] = {
        "block_size": KnobRange(low=2, high=MAX_BLOCK_SIZE, default=8),
        "tree_budget": KnobRange(low=1, high=64, default=16),
        "topk_cap": KnobRange(low=1, high=32, default=8),
    }

    def decoder(self, knobs: Mapping[str, int], seam: Seam = RIGHT) -> Decoder:
        """Return a decoder of these knobs."""
        return TreeDecoder(**knobs, seam=seam)
