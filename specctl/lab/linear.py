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
from specctl.lab.decoding import Block, Decoder, Iteration, KnobRange, Verified
from specctl.lab.seam import RIGHT, Seam


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecoder:
    """A chain of `block_size` candidates, anchor included."""

    block_size: int
    seam: Seam = RIGHT

    def decode(self, batch: Batch) -> Iteration:
        """Draft, verify and commit one chain a row."""
        drafts = batch.propose(self.block_size).argmax(axis=-1)
        candidates = np.concatenate((batch.anchors()[:, None], drafts), axis=1)
        lengths = batch.lengths
        mask = masks.chain_mask(lengths, self.block_size)
        positions = self.seam.positions(lengths, np.arange(self.block_size)[None, :])
        logits, features = batch.verify(candidates, positions, mask, features=True)
        picked = batch.pick(logits, np.broadcast_to(np.arange(self.block_size), candidates.shape))
        walked = self.seam.walked(accept_lengths(candidates, picked))
        kept = self.seam.kept(walked)
        batch.commit(kept, features, None)
        blocks = tuple(
            Block(tokens=tuple(row[: count + 1].tolist()), nodes=self.block_size, accepted_drafts=drafts)
            for row, count, drafts in zip(picked, kept.tolist(), walked.tolist(), strict=True)
        )
        verified = Verified(tokens=candidates, positions=positions, target=picked, walked=walked)
        return Iteration(blocks=blocks, forward_tokens=candidates.size, verified=verified)


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

    def decoder(self, knobs: Mapping[str, int], seam: Seam = RIGHT) -> Decoder:
        """Return a decoder of this block size."""
        return LinearDecoder(block_size=knobs["block_size"], seam=seam)
