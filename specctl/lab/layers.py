"""The arithmetic that target and drafter share, in numpy: RMSNorm, rotary multi-query attention, squared-ReLU MLP.

Weights are folded once at load: norm gains into the matrices that follow them, and each head's halves interleaved, so that
turning a head by its position is one complex multiplication. Queries and keys are unit vectors times a gain, which bounds the
scores: the softmax needs no maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specctl.lab.config import UNIT_EPS, DraftConfig, TargetConfig
from specctl.lab.errors import ModelError
from specctl.lab.weights import Floats

Complexes = NDArray[np.complex64]
# A pass may look this many tokens beyond the last position that a request can keep: the largest tree and its root.
PASS_SLACK = 65
# Scores stay within plus or minus this, so that their exponentials neither overflow nor all vanish in float32.
MAX_SCORE = 60.0
TINY_GAIN = 1e-3
LAYER_TENSORS = (
    "input_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.q_gain",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "post_attention_layernorm.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One block's matrices, ready to multiply from the right.

    `qkv` makes the query heads, one key and one value head; `unit_scale` and `unit_eps`, one entry a query head and one for
    the key, turn a head's squared length into the square of what it is divided by.
    """

    qkv: Floats
    unit_scale: Floats
    unit_eps: Floats
    out: Floats
    up: Floats
    down: Floats


def fold_layer(tensors: Mapping[str, Floats], index: int, config: TargetConfig | DraftConfig) -> LayerWeights:
    """Fold one block's tensors; raise ModelError for a gain that the softmax cannot take."""
    part = {name: tensors[f"layers.{index}.{name}"] for name in LAYER_TENSORS}
    gain = part["self_attn.q_gain"]
    highest = float(np.abs(gain).max()) * config.head_dim**0.5
    if highest > MAX_SCORE:
        raise ModelError(
            f"layers.{index}.self_attn.q_gain allows scores of {highest:.0f}, expected at most {MAX_SCORE:.0f}"
        )
    queries = _interleave(part["self_attn.q_proj.weight"], config.head_dim)
    queries = queries * np.repeat(np.sign(gain), config.head_dim)[:, None]
    keys = _interleave(part["self_attn.k_proj.weight"], config.head_dim)
    qkv = np.concatenate((queries, keys, part["self_attn.v_proj.weight"]))
    scales = np.append(np.maximum(np.abs(gain), TINY_GAIN) * config.head_dim**-0.5, 1.0).astype(np.float32)
    return LayerWeights(
        qkv=_columns(qkv * part["input_layernorm.weight"]),
        unit_scale=1.0 / (config.head_dim * scales * scales),
        unit_eps=np.float32(UNIT_EPS) / (scales * scales),
        out=_columns(part["self_attn.o_proj.weight"]),
        up=_columns(part["mlp.up_proj.weight"] * part["post_attention_layernorm.weight"]),
        down=_columns(part["mlp.down_proj.weight"]),
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
    turns: Complexes = np.exp(1j * angles).astype(np.complex64)
    return turns


def rms_norm(x: Floats, eps: float) -> Floats:
    """Scale each row to unit root mean square; gains live in the matrices that follow."""
    mean: Floats = np.vecdot(x, x)
    mean *= np.float32(1.0 / x.shape[-1])
    mean += np.float32(eps)
    np.sqrt(mean, out=mean)
    unit: Floats = x / mean[..., None]
    return unit


def unit_heads(heads: Floats, turns: Complexes, scale: Floats, eps: Floats) -> Floats:
    """Scale each of [..., heads, head_dim] to its gain and turn its pairs by the position's unit numbers."""
    lengths: Floats = np.vecdot(heads, heads)
    lengths *= scale
    lengths += eps
    np.sqrt(lengths, out=lengths)
    turned = heads.view(np.complex64) * turns
    turned /= lengths[..., None]
    return turned.view(np.float32)


def attend(queries: Floats, keys: Floats, values: Floats, mask: Floats) -> Floats:
    """Mix values for queries [rows, tokens, heads, head_dim] over keys [rows, head_dim, slots] and values [rows, slots, head_dim].

    `mask` is added to the scores, [rows, tokens (or 1 for all), slots]: 0 where a token may look, minus infinity elsewhere.
    """
    rows, tokens, heads, width = queries.shape
    scores: Floats = np.matmul(queries.reshape(rows, tokens * heads, width), keys)
    split = scores.reshape(rows, tokens, heads, -1)
    split += mask[:, :, None, :]
    np.exp(scores, out=scores)
    mixed: Floats = np.matmul(scores, values)
    mixed /= scores.sum(axis=-1, keepdims=True)
    return mixed.reshape(rows * tokens, heads * width)


def mlp(x: Floats, layer: LayerWeights, eps: float) -> Floats:
    """Return what the block's MLP adds to the stream."""
    inner: Floats = rms_norm(x, eps) @ layer.up
    np.maximum(inner, 0.0, out=inner)
    inner *= inner
    added: Floats = inner @ layer.down
    return added
