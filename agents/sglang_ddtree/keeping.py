"""What is kept of a verified tree: keys and values of the accepted path, at the front; and what the target saw along it."""

from __future__ import annotations

from typing import Protocol

import torch


class Pool(Protocol):
    """The target's cache of keys and values."""

    def move_kv_cache(self, tgt_loc: torch.Tensor, src_loc: torch.Tensor) -> None:
        """Copy all layers' entries from places to places, reading all before it writes any."""


def sources(path: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
    """Return which node [R, P] is to lie at each of the first P places: the path's, and behind it what lies there anyway."""
    places = torch.arange(path.shape[1], device=path.device)
    return torch.where(places <= accepted.unsqueeze(1), path, places)


def move(pool: Pool, places: torch.Tensor, nodes: torch.Tensor) -> None:
    """Copy the entries of `nodes` [R, P] to each request's first P of its `places` [R, …]; the root lies there already."""
    if nodes.shape[1] > 1:
        pool.move_kv_cache(places[:, 1 : nodes.shape[1]].flatten(), places.gather(1, nodes)[:, 1:].flatten())


def along(hidden: torch.Tensor, path: torch.Tensor, width: int) -> torch.Tensor:
    """Return the hidden states [R, P, …] of the nodes on each path, out of those of all nodes [R × width or more, …]."""
    requests = len(path)
    trees = hidden[: requests * width].view(requests, width, -1)
    return trees.gather(1, path.unsqueeze(-1).expand(-1, -1, trees.shape[-1]))
