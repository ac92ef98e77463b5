"""The DFlash drafter in numpy: a block of masks filled in one pass, conditioned on the target's features.

Source: DFlash, block diffusion for speculative decoding. The block is [anchor, mask, mask, ...]; its tokens attend to each
other in both directions and to keys and values made from the target's features of every position before the anchor. The
anchor itself has no features yet: the target has not seen it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from specctl.lab import layers, masks
from specctl.lab.cache import Ints, KvCache
from specctl.lab.config import DraftConfig
from specctl.lab.forward import Target
from specctl.lab.weights import Floats


class Drafter:
    """Proposes the tokens after each row's anchor, all depths at once; shares the target's embedding and head."""

    def __init__(self, config: DraftConfig, tensors: Mapping[str, Floats], target: Target) -> None:
        """Fold the tensors once; the context's projections of all layers become one matrix."""
        self.config = config
        self._embedding = target.embedding
        self._block = tensors["block_embed.weight"]
        self._fc = np.ascontiguousarray(tensors["fc.weight"].T)
        self._head = np.ascontiguousarray((target.plain_head * tensors["norm.weight"]).T)
        self._layers = [layers.fold_layer(tensors, index, config) for index in range(config.num_hidden_layers)]
        self._context = layers.fold_context(tensors, config)
        self._turns = layers.rotations(config)
        self._key_scale, self._key_eps = self._layers[0].unit_scale[-1:], self._layers[0].unit_eps[-1:]

    def absorb(self, features: Floats, first_row: int, lengths: Ints, cache: KvCache) -> None:
        """Write keys and values of the positions from `lengths` on, given their features [rows, count, layers, hidden]."""
        config = self.config
        rows, count = features.shape[:2]
        flat = layers.rms_norm(features, config.rms_norm_eps).reshape(rows * count, -1)
        context = layers.rms_norm(flat @ self._fc, config.rms_norm_eps) @ self._context
        made = context.reshape(rows, count, config.num_hidden_layers, 2, config.head_dim)
        slots = masks.chain_positions(lengths, count)
        keys = layers.unit_heads(made[:, :, :, 0], self._turns[slots][:, :, None, :], self._key_scale, self._key_eps)
        every = np.arange(first_row, first_row + rows)[:, None]
        for index in range(config.num_hidden_layers):
            cache.write(index, every, slots, keys[:, :, index], made[:, :, index, 1])

    def propose(self, anchors: Ints, lengths: Ints, cache: KvCache, block_size: int) -> Floats:
        """Return logits [rows, block_size - 1, vocabulary] of the tokens that follow each anchor.

        The block's own keys and values go to the slots after the prefix, where the next `absorb` overwrites them.
        """
        config = self.config
        rows, heads, eps = len(anchors), config.num_attention_heads, config.rms_norm_eps
        mask, slots = masks.block_mask(lengths, block_size), masks.chain_positions(lengths, block_size)
        turns = self._turns[slots][:, :, None, :]
        seen, every = mask.shape[-1], np.arange(rows)[:, None]
        blocks = np.repeat(self._block[None, :block_size], rows, axis=0)
        blocks[:, 0] += self._embedding[anchors]
        x = blocks.reshape(rows * block_size, -1)
        for index, layer in enumerate(self._layers):
            qkv = (layers.rms_norm(x, eps) @ layer.qkv).reshape(rows, block_size, heads + 2, -1)
            turned = layers.unit_heads(qkv[:, :, : heads + 1], turns, layer.unit_scale, layer.unit_eps)
            cache.write(index, every, slots, turned[:, :, heads], qkv[:, :, heads + 1])
            keys, values = cache.read(index, slice(0, rows), seen)
            x += layers.attend(turned[:, :, :heads], keys, values, mask) @ layer.out
            x += layers.mlp(x, layer, eps)
        drafted = x.reshape(rows, block_size, -1)[:, 1:].reshape(rows * (block_size - 1), -1)
        logits: Floats = layers.rms_norm(drafted, eps) @ self._head
        return logits.reshape(rows, block_size - 1, -1)
