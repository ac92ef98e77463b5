"""The places where speculative engines go wrong, as functions that the decoders call: right ones by default, wrong ones for trials.

Decoders know no faults: whoever wants a bent engine hands it another seam (specctl.lab.bends).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specctl.lab import masks
from specctl.lab.cache import Ints, KvCache
from specctl.lab.weights import Floats


def along(features: Floats, paths: Ints) -> Floats:
    """Return the features of each row's accepted path."""
    kept: Floats = features[np.arange(len(paths))[:, None], paths]
    return kept


def all_of(accepted: Ints) -> Ints:
    """Return what was accepted, all of it."""
    return accepted


def as_given(number: int) -> int:
    """Return a limit as it is."""
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """What one step asks for, in its order.

    `budget`: how many nodes to draft. `positions` (lengths, depths) and `tree_mask` (lengths, parents): what the pass is given.
    `walked`: how far the walk went, `kept`: how many of these drafts are committed. `compact` and `gather`: what is moved along
    the accepted path. `limit`: after how many tokens a request ends.
    """

    budget: Callable[[int], int] = as_given
    positions: Callable[[Ints, Ints], Ints] = masks.tree_positions
    tree_mask: Callable[[Ints, Ints], Floats] = masks.tree_mask
    walked: Callable[[Ints], Ints] = all_of
    kept: Callable[[Ints], Ints] = all_of
    compact: Callable[[KvCache, Ints, Ints], None] = KvCache.compact
    gather: Callable[[Floats, Ints], Floats] = along
    limit: Callable[[int], int] = as_given


RIGHT = Seam()
