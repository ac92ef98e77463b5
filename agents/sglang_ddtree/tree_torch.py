"""The tree of `tree`, for a batch and in torch: no loop over requests or nodes, and nothing read back from the device.

Shapes: R requests, L depths, K alternatives a depth, N nodes with the root. Every loop's length is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """A tree a request, padded to N nodes: `tokens`, `parents`, `depths` are [R, N], `real` says which nodes there are.

    Padding repeats the root's token, lies at depth 0 and is nobody's child.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    depths: torch.Tensor
    real: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The way down each tree: `path` [R, P] of nodes, root first, which repeats its last node; `accepted` [R] drafts on it.

    `committed` [R, P] are the target's tokens along the path: the first `accepted` + 1 of them count.
    """

    path: torch.Tensor
    accepted: torch.Tensor
    committed: torch.Tensor


def top(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids and values of the `count` largest logits [..., V], largest first; of equals the lower id.

    `logits` is overwritten. One pass a rank: the order among equals, which `torch.topk` leaves open, decides here whether two
    ranks of a tensor-parallel group draft one tree.
    """
    ids, values = [], []
    for _ in range(count):
        place = logits.argmax(dim=-1, keepdim=True)  # documented to name the first of equals; max() and topk() are not
        ids.append(place)
        values.append(logits.gather(-1, place))
        logits.scatter_(-1, place, float("-inf"))
    return torch.cat(ids, dim=-1), torch.cat(values, dim=-1)


def grow(roots: torch.Tensor, tokens: torch.Tensor, scores: torch.Tensor, budget: int) -> Trees:
    """Return the best tree of each request for its root [R] and the alternatives [R, L, K] with their log-probabilities.

    Depth by depth the list of the best nodes so far takes in the children of its deepest: a node of the final tree has its
    parent in the list, so that nothing is lost by keeping only as many as the tree will have.
    """
    requests, depths, alternatives = scores.shape
    size, device = budget + 1, roots.device
    steps = (-scores.double()).clamp(min=0.0)
    if alternatives == 1:
        return _chain(roots, tokens[:, :budget, 0], steps[:, :budget, 0])
    cost = torch.full((requests, size), float("inf"), dtype=torch.float64, device=device)
    cost[:, 0] = 0.0
    parent, depth, rank = (torch.zeros((requests, size), dtype=torch.int64, device=device) for _ in range(3))
    places = torch.arange(size, device=device)
    ranks = torch.arange(alternatives, device=device)
    for level in range(1, min(depths, budget) + 1):
        tips = torch.where((depth == level - 1) & torch.isfinite(cost), cost, float("inf"))
        costs = torch.cat([cost, (tips.unsqueeze(-1) + steps[:, level - 1].unsqueeze(1)).flatten(1)], dim=1)
        parents = torch.cat([parent, places.repeat_interleave(alternatives).expand(requests, -1)], dim=1)
        kinds = torch.cat([rank, ranks.repeat(size).expand(requests, -1)], dim=1)
        levels = torch.cat([depth, torch.full((requests, size * alternatives), level, device=device)], dim=1)
        order = _order(costs, parents * alternatives + kinds)
        moved = torch.empty_like(costs, dtype=torch.int64).scatter_(1, order, _counting(order))
        order = order[:, :size]
        cost, rank, depth = (each.gather(1, order) for each in (costs, kinds, levels))
        parent = moved.gather(1, parents.gather(1, order))
    real = torch.isfinite(cost)
    drafted = real & (depth > 0)
    below = (depth - 1).clamp(min=0)
    named = tokens.flatten(1).gather(1, below * alternatives + rank)
    return Trees(
        tokens=torch.where(drafted, named, roots.unsqueeze(1)),
        parents=torch.where(drafted, parent, 0),
        depths=torch.where(drafted, depth, 0),
        real=real,
    )


def _chain(roots: torch.Tensor, tokens: torch.Tensor, steps: torch.Tensor) -> Trees:
    """Return the trees of one alternative a depth [R, L], with a tenth of the work: linear DFlash shall cost no more than it is."""
    tokens = torch.cat([roots.unsqueeze(1), tokens], dim=1)
    real = torch.cat(
        [torch.ones_like(roots, dtype=torch.bool).unsqueeze(1), torch.isfinite(steps.cumsum(dim=1))], dim=1
    )
    depths = torch.where(real, _counting(tokens), 0)
    return Trees(
        tokens=torch.where(real, tokens, roots.unsqueeze(1)),
        parents=(depths - 1).clamp(min=0),
        depths=depths,
        real=real,
    )


def padded(trees: Trees, width: int) -> Trees:
    """Return the trees with padding up to `width` nodes: a pass that was captured as a graph has one width."""
    missing = width - trees.tokens.shape[1]
    if missing <= 0:
        return trees
    empty = torch.zeros((len(trees.tokens), missing), dtype=torch.int64, device=trees.tokens.device)
    return Trees(
        tokens=torch.cat([trees.tokens, empty + trees.tokens[:, :1]], dim=1),
        parents=torch.cat([trees.parents, empty], dim=1),
        depths=torch.cat([trees.depths, empty], dim=1),
        real=torch.cat([trees.real, empty.bool()], dim=1),
    )


def _order(costs: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return the order by cost, of equals by key; the root, at place 0, before all."""
    keys = keys.clone()
    keys[:, 0] = -1
    by_key = keys.argsort(dim=1, stable=True)
    by_cost = costs.gather(1, by_key).argsort(dim=1, stable=True)
    return by_key.gather(1, by_cost)


def _counting(like: torch.Tensor) -> torch.Tensor:
    return torch.arange(like.shape[1], device=like.device).expand_as(like)


def ancestors(trees: Trees) -> torch.Tensor:
    """Return [R, N, N]: whether a node (row) may see another: itself and those on the way to its root.

    The way is doubled at each step. A padding node sees itself and the root.
    """
    requests, size = trees.parents.shape
    itself = torch.eye(size, dtype=torch.bool, device=trees.parents.device)
    seen = itself.expand(requests, size, size).clone()
    jump, reached = trees.parents, 1
    while reached < size:
        seen |= seen.gather(1, jump.unsqueeze(-1).expand(requests, size, size))
        jump = jump.gather(1, jump)
        reached *= 2
    return seen


def positions(trees: Trees, lengths: torch.Tensor) -> torch.Tensor:
    """Return each node's place [R, N] in its sequence, of which `lengths` [R] tokens lie before the root."""
    return lengths.unsqueeze(1) + trees.depths


def walk(trees: Trees, seen: torch.Tensor, picks: torch.Tensor, longest: int) -> Walk:
    """Follow the target's tokens `picks` [R, N], best ones or draws, down each tree; `longest` is the deepest possible depth.

    A node is accepted when it and all above it are what the target put there, so that at most one at a depth is.
    """
    follows = trees.real & (trees.tokens == picks.gather(1, trees.parents)) & (trees.depths > 0)
    follows[:, 0] = True
    accepted = follows & ~(seen & ~follows.unsqueeze(1)).any(dim=-1)
    wanted = torch.arange(longest + 1, device=picks.device)
    there = accepted.unsqueeze(1) & (trees.depths.unsqueeze(1) == wanted.view(1, -1, 1))
    found = there.any(dim=-1)
    count = found.sum(dim=-1) - 1
    path = there.to(torch.int8).argmax(dim=-1)
    last = path.gather(1, count.unsqueeze(1))
    path = torch.where(found, path, last)
    return Walk(path=path, accepted=count, committed=picks.gather(1, path))


def links(trees: Trees) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each node's first child and next sibling [R, N], -1 where there is none: how a grammar walks the tree."""
    size = trees.parents.shape[1]
    drafted = trees.real & (trees.depths > 0)
    places = torch.arange(size, device=trees.parents.device)
    child = drafted.unsqueeze(1) & (trees.parents.unsqueeze(1) == places.view(1, -1, 1))
    later = places.view(1, 1, -1) > places.view(1, -1, 1)
    beside = drafted.unsqueeze(2) & drafted.unsqueeze(1) & later
    beside &= trees.parents.unsqueeze(2) == trees.parents.unsqueeze(1)
    return _first(child), _first(beside)


def _first(marks: torch.Tensor) -> torch.Tensor:
    return torch.where(marks.any(dim=-1), marks.to(torch.int8).argmax(dim=-1), -1)
