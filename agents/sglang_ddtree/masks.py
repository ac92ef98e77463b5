"""The mask of a verify pass as attention backends of SGLang read it: request by request, a row a node, its whole past and the tree.

Flat, of bool: request r's part begins where those before it end and has N rows of `lengths[r]` + N columns.
"""

from __future__ import annotations

import torch


def full(seen: torch.Tensor, lengths: torch.Tensor, size: int) -> torch.Tensor:
    """Return the flat mask of trees `seen` [R, N, N] behind `lengths` [R] tokens each, in `size` places.

    `size` is a bound that the host knows, N × (sum of lengths + R × N) or more: nothing is read from the device. Every node
    sees all that was decided before the tree.
    """
    requests, nodes, _ = seen.shape
    places = torch.arange(nodes, device=seen.device)
    columns = lengths.long() + nodes
    ends = torch.cumsum(columns * nodes, dim=0)
    begins = (ends - columns * nodes).view(requests, 1, 1)
    rows = begins + places.view(1, nodes, 1) * columns.view(requests, 1, 1)
    at = rows + lengths.long().view(requests, 1, 1) + places.view(1, 1, nodes)
    mask = torch.ones(size, dtype=torch.bool, device=seen.device)
    mask[at.flatten()] = seen.flatten()
    return mask
