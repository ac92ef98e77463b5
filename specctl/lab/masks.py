"""Which cache slots a token may see and which position it has, for each kind of pass.

Kept apart and small: these few lines are what a wrong speculative engine gets wrong. A pass writes its token i of row r to
slot lengths[r] + i, whatever the token's position.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specctl.lab.cache import Ints
from specctl.lab.weights import Floats

HIDDEN = np.float32(-np.inf)
SEEN = np.float32(0.0)


def chain_positions(lengths: Ints, tokens: int) -> Ints:
    """Return the positions of a chain that continues each row."""
    positions: Ints = lengths[:, None] + np.arange(tokens)
    return positions


def chain_mask(lengths: Ints, tokens: int) -> Floats:
    """Let each token of a chain see its row's prefix, the chain before it and itself."""
    slots = np.arange(int(lengths.max()) + tokens)
    return np.where(slots <= chain_positions(lengths, tokens)[:, :, None], SEEN, HIDDEN)


def block_mask(lengths: Ints, tokens: int) -> Floats:
    """Let each token of a draft block see its row's prefix and the whole block; [rows, 1, slots], the same for every token."""
    slots = np.arange(int(lengths.max()) + tokens)
    return np.where(slots < (lengths + tokens)[:, None, None], SEEN, HIDDEN)


def tree_positions(lengths: Ints, depths: Ints) -> Ints:
    """Return the nodes' positions: the row's length plus the node's depth, not its index."""
    positions: Ints = lengths[:, None] + depths
    return positions


def ancestors(parents: Ints) -> NDArray[np.bool_]:
    """Return [rows, nodes, nodes]: whether the second node lies on the first one's path from the root, itself included.

    Parents come before their children; the root is its own parent.
    """
    rows, nodes = parents.shape
    seen = np.zeros((rows, nodes, nodes), dtype=np.bool_)
    seen[:, 0, 0] = True
    every = np.arange(rows)
    for node in range(1, nodes):
        seen[:, node] = seen[every, parents[:, node]]
        seen[:, node, node] = True
    return seen


def tree_mask(lengths: Ints, parents: Ints) -> Floats:
    """Let each node see its row's prefix and its own ancestors, no sibling or cousin."""
    rows, nodes = parents.shape
    slots = int(lengths.max()) + nodes
    mask = np.full((rows, nodes, slots), HIDDEN, dtype=np.float32)
    mask.swapaxes(1, 2)[np.arange(slots) < lengths[:, None]] = SEEN
    own = lengths[:, None] + np.arange(nodes)
    every = np.arange(rows)[:, None, None]
    mask[every, np.arange(nodes)[:, None], own[:, None, :]] = np.where(ancestors(parents), SEEN, HIDDEN)
    return mask
