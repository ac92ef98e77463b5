"""Plain decoding: one token a request and iteration, the reference for every other algo."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from specctl.lab import masks
from specctl.lab.batch import Batch
from specctl.lab.decoding import Block, Decoder, Iteration, KnobRange
from specctl.lab.seam import RIGHT, Seam


class Autoregressive:
    """Algo none."""

    name = "none"
    drafts = False
    knobs: Mapping[str, KnobRange] = {}

    def decoder(self, _knobs: Mapping[str, int], _seam: Seam = RIGHT) -> Decoder:
        """Return itself: there is nothing to set."""
        return self

    def decode(self, batch: Batch) -> Iteration:
        """Run each row's anchor through the target and take its token."""
        lengths = batch.lengths
        mask, positions = masks.chain_mask(lengths, 1), masks.chain_positions(lengths, 1)
        logits, _ = batch.verify(batch.anchors()[:, None], positions, mask, features=False)
        picked = batch.pick(logits, np.zeros((len(lengths), 1), dtype=np.int64))
        batch.advance()
        return Iteration(
            blocks=tuple(Block(tokens=(int(token),)) for token in picked[:, 0]), forward_tokens=len(lengths)
        )
