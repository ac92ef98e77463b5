"""Linear DFlash: a block-diffusion drafter proposes one chain, the target verifies it in one pass (arXiv 2602.06036)."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.algos.types import Algo, Knob, Shape


def _chain(knobs: Mapping[str, int]) -> int | None:
    block = knobs.get("block_size")
    return None if block is None else block - 1


def _block(knobs: Mapping[str, int]) -> int | None:
    return knobs.get("block_size")


ALGO = Algo(
    name="dflash",
    shape=Shape.CHAIN,
    summary="a chain of drafts, verified in one pass",
    knobs=(Knob(name="block_size", low=2, high=64, meaning="tokens of a block: the anchor and the drafts after it"),),
    max_drafts=_chain,
    checked=_block,
)
