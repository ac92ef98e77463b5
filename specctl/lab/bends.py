"""Wrong engines, each wrong in one place: the mistakes that implementers of trees make (docs/lab-server.md, Faults).

A bend takes a seam and returns it with one function replaced, so that bends add up. Nothing here is called without a fault.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from specctl.lab import masks
from specctl.lab.cache import Ints, KvCache
from specctl.lab.layers import PASS_SLACK
from specctl.lab.seam import RIGHT, Seam
from specctl.lab.weights import Floats

KEPT_DRAFTS = 1
"""How many drafts of a path survive where the rest is thrown away."""
Bend = Callable[[Seam], Seam]


def _causal_tree_mask(lengths: Ints, parents: Ints) -> Floats:
    """Let each node see every node before it, siblings and cousins too, as in a chain."""
    return masks.chain_mask(lengths, parents.shape[1])


def _shifted_positions(lengths: Ints, depths: Ints) -> Ints:
    """Place every draft one position too far; the root stays right."""
    positions: Ints = masks.tree_positions(lengths, depths) + (depths > 0)
    return positions


def _indexed_positions(lengths: Ints, depths: Ints) -> Ints:
    """Place every node by its index; a chain's are right."""
    return masks.chain_positions(lengths, depths.shape[1])


def _stay(_cache: KvCache, _lengths: Ints, _paths: Ints) -> None:
    """Leave keys and values where the pass wrote them."""


def _first_nodes(features: Floats, paths: Ints) -> Floats:
    """Take the features of the first nodes, as if the path were a chain."""
    return features[:, : paths.shape[1]]


def _at_most_one(accepted: Ints) -> Ints:
    """Cut a path after its first draft."""
    return np.minimum(accepted, KEPT_DRAFTS)


def _doubled(budget: int) -> int:
    """Return twice the budget, as far as a pass has room."""
    return min(2 * budget, PASS_SLACK - 1)


BENDS: Mapping[str, Bend] = {
    "mask-wrong": lambda seam: dataclasses.replace(seam, tree_mask=_causal_tree_mask),
    "position-off-by-one": lambda seam: dataclasses.replace(seam, positions=_shifted_positions),
    "position-is-index": lambda seam: dataclasses.replace(seam, positions=_indexed_positions),
    "kv-not-moved": lambda seam: dataclasses.replace(seam, compact=_stay),
    "features-wrong": lambda seam: dataclasses.replace(seam, gather=_first_nodes),
    "drafts-discarded": lambda seam: dataclasses.replace(seam, kept=_at_most_one),
    "walk-short": lambda seam: dataclasses.replace(seam, walked=_at_most_one),
    "budget-ignored": lambda seam: dataclasses.replace(seam, budget=_doubled),
}
"""The faults that bend decoding, by the names that `--inject` takes."""


def ends_after(tokens: int) -> Bend:
    """Return the bend that ends every request after this many tokens, saying that its limit was reached."""
    return lambda seam: dataclasses.replace(seam, limit=lambda limit: min(limit, tokens))


def bent(bends: Iterable[Bend]) -> Seam:
    """Return the right seam with these bends."""
    return functools.reduce(lambda seam, bend: bend(seam), bends, RIGHT)
