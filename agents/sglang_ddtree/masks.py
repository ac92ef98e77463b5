"""The mask of a verify pass as attention backends of SGLang read it: request by request, a row a node, its whole past and the tree.

Flat, of bool: request r's part begins where those before it end and has N rows of `lengths[r]` + N columns.
"""

from __future__ import annotations

import torch


def full(seen: torch.Tensor, lengths: torch.Tensor, most: int) -> torch.Tensor:
    """Return the flat mask of trees `seen` [R, N, N] behind `lengths` [R] tokens each, in N × (`most` + R × N) places.

    `most` is a bound of the sum of lengths that the host knows: nothing is read from the device. With R times the model's context
    or less, a mask is no larger than what the engine's graphs have room for. Every node sees all that was decided before the tree.
    """
    requests, nodes, _ = seen.shape
    places = torch.arange(nodes, device=seen.device)
    columns = lengths.long() + nodes
    ends = torch.cumsum(columns * nodes, dim=0)
    begins = (ends - columns * nodes).view(requests, 1, 1)
    rows = begins + places.view(1, nodes, 1) * columns.view(requests, 1, 1)
    at = rows + lengths.long().view(requests, 1, 1) + places.view(1, 1, nodes)
    mask = torch.ones(nodes * (most + requests * nodes), dtype=torch.bool, device=seen.device)
    mask[at.flatten()] = seen.flatten()
    return mask
