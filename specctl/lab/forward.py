"""The target's forward pass in numpy, over a batch of cache rows and any tree of tokens that a mask describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specctl.lab import layers
from specctl.lab.cache import Ints, KvCache
from specctl.lab.config import TargetConfig
from specctl.lab.weights import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What goes through the target at once: [rows, tokens] of tokens and positions, and what each may see."""

    first_row: int
    lengths: Ints
    tokens: Ints
    positions: Ints
    mask: Floats


class Target:
    """The verified model: float32 weights upcast from the shipped fp16 ones are the reference for every algo."""

    def __init__(self, config: TargetConfig, tensors: Mapping[str, Floats]) -> None:
        """Fold the tensors once."""
        self.config = config
        self.embedding = tensors["embed_tokens.weight"]
        self.plain_head = tensors["lm_head.weight"]
        self._head = np.ascontiguousarray((tensors["lm_head.weight"] * tensors["norm.weight"]).T)
        self._layers = [layers.fold_layer(tensors, index, config) for index in range(config.num_hidden_layers)]
        self._turns = layers.rotations(config)

    def forward(self, batch: Pass, cache: KvCache, feature_layers: tuple[int, ...] = ()) -> tuple[Floats, Floats]:
        """Write the tokens' keys and values and return hidden states and features.

        Hidden states are [rows, tokens, hidden], before the last norm; features [rows, tokens, layers asked for, hidden].
        """
        config = self.config
        rows, tokens = batch.tokens.shape
        heads, used, seen = (
            config.num_attention_heads,
            slice(batch.first_row, batch.first_row + rows),
            batch.mask.shape[-1],
        )
        slots = batch.lengths[:, None] + np.arange(tokens)
        every = np.arange(batch.first_row, batch.first_row + rows)[:, None]
        turns = self._turns[batch.positions][:, :, None, :]
        x = self.embedding[batch.tokens.reshape(-1)]
        features = np.empty((rows * tokens, len(feature_layers), config.hidden_size), dtype=np.float32)
        for index, layer in enumerate(self._layers):
            qkv = (layers.rms_norm(x, config.rms_norm_eps) @ layer.qkv).reshape(
                rows, tokens, heads + 2, config.head_dim
            )
            turned = layers.unit_heads(qkv[:, :, : heads + 1], turns, layer.unit_scale, layer.unit_eps)
            cache.write(index, every, slots, turned[:, :, heads], qkv[:, :, heads + 1])
            keys, values = cache.read(index, used, seen)
            x += layers.attend(turned[:, :, :heads], keys, values, batch.mask) @ layer.out
            x += layers.mlp(x, layer, config.rms_norm_eps)
            if index in feature_layers:
                features[:, feature_layers.index(index)] = x
        return x.reshape(rows, tokens, -1), features.reshape(rows, tokens, len(feature_layers), config.hidden_size)

    def logits(self, hidden: Floats) -> Floats:
        """Return the vocabulary's scores after the last norm; any leading dimensions."""
        flat = layers.rms_norm(hidden.reshape(-1, hidden.shape[-1]), self.config.rms_norm_eps) @ self._head
        return flat.reshape(*hidden.shape[:-1], -1)
