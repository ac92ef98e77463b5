"""The arithmetic that target and drafter share, in numpy: RMSNorm, rotary multi-query attention, squared-ReLU MLP.

Weights are folded once at load: norm gains and the attention's scale into the matrices that follow them, and each head's
halves interleaved, so that turning a head by its position is one complex multiplication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.weights import Floats

Complexes = NDArray[np.complex64]
# A pass may look this many tokens beyond the last position that a request can keep: the largest tree and its root.
PASS_SLACK = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One block's matrices, ready to multiply from the right; `qkv` makes queries, then one key, then one value head."""

    qkv: Floats
    out: Floats
    up: Floats
    down: Floats


def fold_layer(tensors: Mapping[str, Floats], index: int, config: TargetConfig | DraftConfig) -> LayerWeights:
    """Fold one block's tensors."""
    part = {name: tensors[f"layers.{index}.{name}.weight"] for name in (
        "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
        "post_attention_layernorm", "mlp.up_proj", "mlp.down_proj",
    )}
    scale = np.float32(config.head_dim**-0.5)
    qkv = np.concatenate((
        _interleave(part["self_attn.q_proj"], config.head_dim) * scale,
        _interleave(part["self_attn.k_proj"], config.head_dim),
        part["self_attn.v_proj"],
    ))
    return LayerWeights(
        qkv=_columns(qkv * part["input_layernorm"]),
        out=_columns(part["self_attn.o_proj"]),
        up=_columns(part["mlp.up_proj"] * part["post_attention_layernorm"]),
        down=_columns(part["mlp.down_proj"]),
    )


def fold_context(tensors: Mapping[str, Floats], config: DraftConfig) -> Floats:
    """Return one matrix from normed context to every layer's key and value, in that order; the context has its own gain."""
    parts: list[Floats] = []
    for index in range(config.num_hidden_layers):
        parts.append(_interleave(tensors[f"layers.{index}.self_attn.k_proj.weight"], config.head_dim))
        parts.append(tensors[f"layers.{index}.self_attn.v_proj.weight"])
    return _columns(np.concatenate(parts) * tensors["hidden_norm.weight"])


def _columns(matrix: Floats) -> Floats:
    return np.ascontiguousarray(matrix.T, dtype=np.float32)


def _interleave(matrix: Floats, head_dim: int) -> Floats:
    """Reorder each head's rows from halves (0..h/2, h/2..h) to pairs (0, h/2, 1, h/2 + 1, ...)."""
    heads = matrix.reshape(-1, 2, head_dim // 2, matrix.shape[1])
    return heads.transpose(0, 2, 1, 3).reshape(matrix.shape)


def rotations(config: TargetConfig | DraftConfig) -> Complexes:
    """Return the unit complex numbers that turn a head's pairs, one row a position a pass may reach."""
    frequencies = config.rope_theta ** (-np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim)
    angles = np.arange(config.max_position_embeddings + PASS_SLACK, dtype=np.float64)[:, None] * frequencies
    return np.exp(1j * angles).astype(np.complex64)


def rms_norm(x: Floats, eps: float) -> Floats:
    """Scale each row to unit root mean square; gains live in the matrices that follow."""
    mean: Floats = np.vecdot(x, x)
    mean *= np.float32(1.0 / x.shape[-1])
    mean += np.float32(eps)
    np.sqrt(mean, out=mean)
    return x / mean[..., None]


def rotate(heads: Floats, turns: Complexes) -> Floats:
    """Turn the interleaved pairs of [..., head_dim] by the positions' unit numbers [..., head_dim / 2]."""
    turned: Floats = (heads.view(np.complex64) * turns).view(np.float32)
    return turned


def attend(queries: Floats, keys: Floats, values: Floats, mask: Floats) -> Floats:
    """Mix values for queries [rows, tokens, heads, head_dim] over slots [rows, slots, head_dim].

    `mask` is added to the scores, [rows, tokens, slots]: 0 where a token may look, minus infinity elsewhere.
    """
    rows, tokens, heads, width = queries.shape
    scores: Floats = np.matmul(queries.reshape(rows, tokens * heads, width), keys.transpose(0, 2, 1))
    split = scores.reshape(rows, tokens, heads, -1)
    split += mask[:, :, None, :]
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    totals = scores.sum(axis=-1, keepdims=True)
    mixed: Floats = np.matmul(scores, values)
    mixed /= totals
    return mixed.reshape(rows * tokens, heads * width)


def mlp(x: Floats, layer: LayerWeights, eps: float) -> Floats:
    """Return what the block's MLP adds to the stream."""
    inner = rms_norm(x, eps) @ layer.up
    np.maximum(inner, 0.0, out=inner)
    inner *= inner
    return inner @ layer.down
