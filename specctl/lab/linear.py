"""Linear DFlash: verify the drafter's best chain, accept while the target says the same, then take the target's own token.

Source: DFlash, block diffusion for speculative decoding. Candidates are [anchor, d1, d2, ...]; draft d(i) is accepted while
the target's token after candidate i - 1 equals it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specctl.lab import masks
from specctl.lab.batch import Batch
from specctl.lab.cache import Ints
from specctl.lab.config import MAX_BLOCK_SIZE
from specctl.lab.decoding import Block, Decoder, Iteration, KnobRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecoder:
    """A chain of `block_size` candidates, anchor included."""

    block_size: int

    def decode(self, batch: Batch) -> Iteration:
        """Draft, verify and commit one chain a row."""
        drafts = batch.propose(self.block_size).argmax(axis=-1)
        candidates = np.concatenate((batch.anchors()[:, None], drafts), axis=1)
        lengths = batch.lengths
        mask, positions = masks.chain_mask(lengths, self.block_size), masks.chain_positions(lengths, self.block_size)
        logits, features = batch.verify(candidates, positions, mask, features=True)
        picked = batch.pick(logits, np.broadcast_to(np.arange(self.block_size), candidates.shape))
        accepted = accept_lengths(candidates, picked)
        batch.commit(accepted, features, None)
        blocks = tuple(
            Block(tokens=tuple(row[: count + 1].tolist()), nodes=self.block_size)
            for row, count in zip(picked, accepted.tolist(), strict=True)
        )
        return Iteration(blocks=blocks, forward_tokens=candidates.size)


def accept_lengths(candidates: Ints, picked: Ints) -> Ints:
    """Return how many drafts of each row the target agreed with, up to the first it did not."""
    agreed = picked[:, :-1] == candidates[:, 1:]
    lengths: Ints = np.logical_and.accumulate(agreed, axis=1).sum(axis=1)
    return lengths


class Linear:
    """Algo dflash."""

    name = "dflash"
    drafts = True
    knobs: Mapping[str, KnobRange] = {"block_size": KnobRange(low=2, high=MAX_BLOCK_SIZE, default=8)}

    def decoder(self, knobs: Mapping[str, int]) -> Decoder:
        """Return a decoder of this block size."""
        return LinearDecoder(block_size=knobs["block_size"])
