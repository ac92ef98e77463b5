"""Model folders on disk: `config.json` and fp16 `model.safetensors`, read whole and upcast to float32."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.errors import ModelError

Floats = NDArray[np.float32]
Config = TypeVar("Config", TargetConfig, DraftConfig)

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"


def read_config(folder: Path, kind: type[Config]) -> Config:
    """Read and check `config.json`; raise ModelError naming the file and what is wrong with it."""
    path = folder / CONFIG_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as JSON: {error}") from error
    return kind.parse(document, str(path))


def read_tensors(folder: Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Floats]:
    """Read exactly the expected tensors as float32; raise ModelError for a missing, surplus or misshapen one."""
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        stored = safetensors.numpy.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path}: corrupt weights: {error}") from error
    for name, shape in expected.items():
        if name not in stored:
            raise ModelError(f"{path}: tensor {name} is missing")
        if stored[name].shape != shape:
            raise ModelError(
                f"{path}: tensor {name} has shape {stored[name].shape}, the configuration asks for {shape}"
            )
    surplus = sorted(set(stored) - set(expected))
    if surplus:
        raise ModelError(f"{path}: tensor {surplus[0]} is not part of this model")
    tensors = {name: np.ascontiguousarray(stored[name], dtype=np.float32) for name in expected}
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ModelError(f"{path}: tensor {name} holds values that are not finite")
    return tensors


def weight_bytes(folder: Path) -> int:
    """Return the size of the weights file."""
    return (folder / WEIGHTS_FILE).stat().st_size


def target_shapes(config: TargetConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every tensor of a target."""
    outer = (config.vocab_size, config.hidden_size)
    shapes = {"embed_tokens.weight": outer, "norm.weight": (config.hidden_size,), "lm_head.weight": outer}
    return shapes | _layer_shapes(config)


def draft_shapes(config: DraftConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every tensor of a drafter; it shares the target's embedding and head."""
    features = len(config.target_layer_ids) * config.hidden_size
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (config.hidden_size, features),
        "hidden_norm.weight": (config.hidden_size,),
        "block_embed.weight": (config.block_size, config.hidden_size),
        "norm.weight": (config.hidden_size,),
    }
    return shapes | _layer_shapes(config)


def _layer_shapes(config: TargetConfig | DraftConfig) -> dict[str, tuple[int, ...]]:
    hidden, inner = config.hidden_size, config.intermediate_size
    queries, keys = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {}
    for index in range(config.num_hidden_layers):
        layer = f"layers.{index}"
        shapes |= {
            f"{layer}.input_layernorm.weight": (hidden,),
            f"{layer}.self_attn.q_proj.weight": (queries, hidden),
            f"{layer}.self_attn.q_gain": (config.num_attention_heads,),
            f"{layer}.self_attn.k_proj.weight": (keys, hidden),
            f"{layer}.self_attn.v_proj.weight": (keys, hidden),
            f"{layer}.self_attn.o_proj.weight": (hidden, queries),
            f"{layer}.post_attention_layernorm.weight": (hidden,),
            f"{layer}.mlp.up_proj.weight": (inner, hidden),
            f"{layer}.mlp.down_proj.weight": (hidden, inner),
        }
    return shapes
