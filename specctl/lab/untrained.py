"""Tiny models with random weights, for tests and for trying the server without the shipped files; they talk nonsense."""

from __future__ import annotations

import numpy as np

from specctl.lab import weights
from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.drafter import Drafter
from specctl.lab.forward import Target
from specctl.lab.models import Models
from specctl.lab.tokenizer import Tokenizer
from specctl.lab.weights import Floats

SPECIAL_TOKENS = ("<|endoftext|>", "<|mask|>")
VOCAB_SIZE = 256 + len(SPECIAL_TOKENS)


def random_models(seed: int, *, layers: int = 3, hidden: int = 32, block_size: int = 8, spread: float = 0.25) -> Models:
    """Return models drawn from this seed; `spread` is the weights' standard deviation."""
    rng = np.random.default_rng(seed)
    target_config, draft_config = _configs(layers, hidden, block_size)
    target_tensors = _draw(weights.target_shapes(target_config), rng, spread)
    draft_tensors = _draw(weights.draft_shapes(draft_config), rng, spread)
    target = Target(target_config, target_tensors)
    return Models(
        tokenizer=Tokenizer.of_bytes(SPECIAL_TOKENS),
        target=target,
        draft=Drafter(draft_config, draft_tensors, target),
        weight_bytes=sum(tensor.nbytes // 2 for part in (target_tensors, draft_tensors) for tensor in part.values()),
    )


def _configs(layers: int, hidden: int, block_size: int) -> tuple[TargetConfig, DraftConfig]:
    """Return two configurations that fit each other."""
    target = TargetConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=2 * hidden,
        max_position_embeddings=2048,
        rope_theta=10000.0,
        rms_norm_eps=1e-5,
        eos_token_id=0,
    )
    draft = DraftConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=2 * hidden,
        max_position_embeddings=2048,
        rope_theta=10000.0,
        rms_norm_eps=1e-5,
        block_size=block_size,
        mask_token_id=1,
        target_layer_ids=(0, layers - 1),
    )
    return target, draft


def _draw(shapes: dict[str, tuple[int, ...]], rng: np.random.Generator, spread: float) -> dict[str, Floats]:
    """Draw matrices around zero and norm gains around one."""
    return {
        name: (rng.normal(0.0, spread, shape) + (1.0 if len(shape) == 1 else 0.0)).astype(np.float32)
        for name, shape in shapes.items()
    }
