"""Keys and values of the running requests: one row a request, rows kept dense so that a batch is a view, never a copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specctl.lab.weights import Floats

Ints = NDArray[np.int64]


class KvCache:
    """The cache of one model; slots past a row's length hold stale values that every mask hides.

    Keys are [layers, rows, head_dim, slots], ready to be multiplied by queries; values are [layers, rows, slots, head_dim].
    """

    def __init__(self, *, layers: int, rows: int, slots: int, head_dim: int) -> None:
        """Reserve the arrays; pages are touched only as tokens arrive."""
        self.keys: Floats = np.zeros((layers, rows, head_dim, slots), dtype=np.float32)
        self.values: Floats = np.zeros((layers, rows, slots, head_dim), dtype=np.float32)

    def write(self, layer: int, rows: Ints, slots: Ints, keys: Floats, values: Floats) -> None:
        """Store keys and values [rows, tokens, head_dim] at these slots [rows, tokens] of these rows [rows, 1]."""
        self.keys[layer, rows, :, slots] = keys
        self.values[layer, rows, slots] = values

    def read(self, layer: int, rows: slice, slots: int) -> tuple[Floats, Floats]:
        """Return views of the first slots of these rows."""
        return self.keys[layer, rows, :, :slots], self.values[layer, rows, :slots]

    def move_row(self, source: int, target: int, length: int) -> None:
        """Copy a row's first slots over another row."""
        self.keys[:, target, :, :length] = self.keys[:, source, :, :length]
        self.values[:, target, :length] = self.values[:, source, :length]

    def compact(self, lengths: Ints, paths: Ints) -> None:
        """Move the slots of each row's accepted path next to its prefix.

        `paths` is [rows, depth]: the node index, counted from the row's length, that ends up at each depth; the fancy
        read copies before the write, so overlapping moves are safe.
        """
        rows = np.arange(len(lengths))[:, None]
        sources = lengths[:, None] + paths
        targets = lengths[:, None] + np.arange(paths.shape[1])
        self.keys[:, rows, :, targets] = self.keys[:, rows, :, sources]
        self.values[:, rows, targets] = self.values[:, rows, sources]
