"""From the draft's hidden states to the alternatives of each depth: the k best tokens and their log-probabilities.

The engine's own sampler keeps the best token alone. Under tensor parallelism each rank has a part of the vocabulary: the parts'
best are gathered, and every rank then has the same alternatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from sglang_ddtree import tree_torch
from sglang_ddtree.refusals import RefusedError


class Group(Protocol):
    """The tensor-parallel group: how many ranks, and a gather of equal pieces in the order of ranks."""

    world_size: int

    def all_gather_into_tensor(self, output: torch.Tensor, piece: torch.Tensor) -> None:
        """Put all ranks' pieces one after the other into `output`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A rank's part of the target's output layer: `weight` [part of the vocabulary, hidden], and the id of its first row."""

    weight: torch.Tensor
    first: int
    group: Group


def of_target(model: object, group: Group) -> Head:
    """Return the head of a target, or refuse one that is not a plain matrix over one vocabulary."""
    layer = getattr(model, "lm_head", None)
    weight = getattr(layer, "weight", None)
    if weight is None or not weight.dtype.is_floating_point or weight.element_size() == 1:
        raise RefusedError("DDTREE: the target's lm_head is quantised or absent; the draft needs it as a plain matrix")
    shard = getattr(layer, "shard_indices", None)
    if shard is None:
        if group.world_size > 1:
            raise RefusedError("DDTREE: the target's lm_head does not say which part of the vocabulary a rank has")
        return Head(weight=weight, first=0, group=group)
    if int(shard.num_added_elements):
        raise RefusedError("DDTREE: the target's vocabulary was added to, which the draft's head does not cover")
    return Head(weight=weight[: int(shard.num_org_elements)], first=int(shard.org_vocab_start_index), group=group)


def alternatives(hidden: torch.Tensor, head: Head, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and log-probabilities [..., count] of the likeliest tokens after each hidden state, likeliest first."""
    logits = (hidden.to(head.weight.dtype) @ head.weight.T).float()
    total = logits.logsumexp(dim=-1, keepdim=True)
    ids, values = tree_torch.top(logits, min(count, logits.shape[-1]))
    ids = ids + head.first
    ranks = head.group.world_size
    if ranks == 1:
        return ids, values - total
    pieces = [_gather(piece, head.group, ranks) for piece in (ids, values, total)]
    return merge(pieces[0], pieces[1], pieces[2], count)


def merge(
    ids: torch.Tensor, values: torch.Tensor, totals: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the best of all ranks' best [ranks, ..., k], with log-probabilities over the whole vocabulary.

    Ranks have ascending parts of the vocabulary and list equals by ascending id: the first of equals is the lowest.
    """
    ids, values = (torch.cat(tuple(each), dim=-1) for each in (ids, values))
    places, best = tree_torch.top(values.clone(), min(count, values.shape[-1]))
    return ids.gather(-1, places), best - totals.logsumexp(dim=0)


def _gather(piece: torch.Tensor, group: Group, ranks: int) -> torch.Tensor:
    gathered = torch.empty((ranks, *piece.shape), dtype=piece.dtype, device=piece.device)
    group.all_gather_into_tensor(gathered.view(-1), piece.contiguous().view(-1))
    return gathered
