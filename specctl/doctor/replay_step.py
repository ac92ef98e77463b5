"""Hold one verify step against the reference: the accept rule, the walk, the counts and the commit (design.md §7).

Source of the rules: DFlash (arXiv 2602.06036) for a chain, DDTree (arXiv 2604.12989) for a tree, both greedy or sampled: from the
root down, a draft is accepted exactly if it is the target's token after its parent; the target's own next token comes on top.
Shares no code with the lab, whose engine it judges. Each check answers with the figures of a divergence, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from specctl.doctor.replay_types import Kind, Verified

Found = tuple[Kind, str] | None


def parents_of(step: Verified) -> tuple[int, ...]:
    """Return each node's parent, -1 for the root; a step without parents is a chain."""
    return step.parents if step.parents is not None else tuple(range(-1, len(step.tokens) - 1))


def depths_of(step: Verified) -> tuple[int, ...]:
    """Return each node's depth, 0 for the root; the tree must be sound."""
    depths: list[int] = []
    for parent in parents_of(step):
        depths.append(depths[parent] + 1 if depths else 0)
    return tuple(depths)


def reference_walk(step: Verified) -> tuple[int, ...]:
    """Return the path that the accept rule gives, the root first; the tree must be sound."""
    below: dict[tuple[int, int], int] = {}
    for node, parent in enumerate(parents_of(step)):
        if node:
            below.setdefault((parent, step.tokens[node]), node)
    path = [0]
    while (following := below.get((path[-1], step.target[path[-1]]))) is not None:
        path.append(following)
    return tuple(path)


def tree(step: Verified) -> Found:
    """Check that the nodes are a tree: parents first, a token at most once below a node, one figure for each node."""
    count = len(step.tokens)
    for name, values in (("target", step.target), ("parents", step.parents), ("positions", step.positions)):
        if values is not None and len(values) != count:
            return Kind.TOPOLOGY, f"{count} tokens and {len(values)} {name}"
    parents = parents_of(step)
    if parents[0] not in {-1, 0}:
        return Kind.TOPOLOGY, f"the root has parent {parents[0]}"
    seen: dict[tuple[int, int], int] = {}
    for node in range(1, count):
        if not 0 <= parents[node] < node:
            return Kind.TOPOLOGY, f"node {node} has parent {parents[node]}"
        twin = seen.setdefault((parents[node], step.tokens[node]), node)
        if twin != node:
            return Kind.TOPOLOGY, f"nodes {twin} and {node} hold one token below node {parents[node]}"
    return None


def size(step: Verified) -> Found:
    """Check nodes against the budget, depth against the block, children against top-k."""
    count, deepest = len(step.tokens), max(depths_of(step))
    if step.parents is not None and step.budget is not None and count > step.budget + 1:
        return Kind.TOO_MANY, f"{count} nodes, root included, at budget {step.budget}"
    if step.block is not None and deepest > step.block - 1:
        return Kind.TOO_MANY, f"depth {deepest} with block {step.block}"
    if step.parents is not None and step.topk is not None:
        children: dict[int, int] = {}
        for parent in step.parents[1:]:
            children[parent] = children.get(parent, 0) + 1
        most = max(children.values(), default=0)
        if most > step.topk:
            return Kind.TOO_MANY, f"{most} children of one node at top-k {step.topk}"
    return None


def positions(step: Verified) -> Found:
    """Check that each node stands at the prefix's length plus its depth."""
    if step.positions is None:
        return None
    for node, (found, depth) in enumerate(zip(step.positions, depths_of(step), strict=True)):
        if found != step.prefix + depth:
            return Kind.POSITION, f"node {node} at position {found}, {step.prefix} + depth {depth} is due"
    return None


def walk(step: Verified) -> Found:
    """Check the accepted path against the accept rule."""
    parents = parents_of(step)
    if not step.path or step.path[0] != 0:
        return Kind.NOT_A_CHILD, f"the path begins at node {step.path[0] if step.path else None}, not at the root"
    for above, node in pairwise(step.path):
        if not 0 < node < len(step.tokens):
            return Kind.NOT_A_CHILD, f"node {node} of {len(step.tokens)}"
        if parents[node] != above:
            return Kind.NOT_A_CHILD, f"node {node} is below node {parents[node]}, not below {above}"
        if step.tokens[node] != step.target[above]:
            said = f"node {node} holds {step.tokens[node]}, the target said {step.target[above]}"
            return Kind.NOT_TARGETS, said
    due = reference_walk(step)
    if len(step.path) < len(due):
        missed = due[len(step.path)]
        return (
            Kind.WALK_SHORT,
            f"{len(step.path) - 1} of {len(due) - 1} drafts; node {missed} holds the target's token {step.tokens[missed]}",
        )
    return None


def counts(step: Verified) -> Found:
    """Check what the engine counted: a path holds one node a depth, so depth is drafts; nodes include the root."""
    drafts = len(step.path) - 1
    if step.drafts is not None and step.drafts != drafts:
        return Kind.DRAFTS, f"{step.drafts} counted, the path has {drafts}"
    if step.depth is not None and step.depth != drafts:
        return Kind.DEPTH, f"{step.depth} counted, the path has {drafts} drafts; on any path depth = drafts"
    if step.nodes is not None and step.nodes != len(step.tokens):
        return Kind.NODES, f"{step.nodes} counted, {len(step.tokens)} verified"
    return None


def commit(step: Verified) -> Found:
    """Check the bonus and the committed tokens: the accepted drafts and the bonus, less only where the request ended."""
    due = tuple(step.target[node] for node in step.path)
    if step.bonus is not None and step.bonus != due[-1]:
        return Kind.BONUS, f"{step.bonus}, the target said {due[-1]} after node {step.path[-1]}"
    told = f"{len(step.committed)} committed of {len(due) - 1} drafts and the bonus"
    pairs = enumerate(zip(step.committed, due, strict=False))
    wrong = next((at for at, (ours, theirs) in pairs if ours != theirs), None)
    if wrong is not None:
        return Kind.COMMIT_WRONG, f"token {wrong + 1} of the step is {step.committed[wrong]}, accepted was {due[wrong]}"
    short = len(due) - len(step.committed)
    if short < 0:
        return Kind.COMMIT_LONG, told
    if short == 0 or step.finish is not None:
        return None
    return (Kind.BONUS_DROPPED if short == 1 else Kind.THROWN_AWAY), f"{told}, and the request goes on"


CHECKS: Sequence[Callable[[Verified], Found]] = (tree, size, positions, walk, counts, commit)
"""In the order of cause: a check may trust what those before it found sound."""


def first_divergence(step: Verified) -> Found:
    """Return how a step diverges from the reference, by its first cause."""
    return next((found for check in CHECKS if (found := check(step)) is not None), None)
