"""Write small model folders with random weights, for tests that start the lab's real server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from specctl.lab import weights
from specctl.lab.config import DraftConfig, TargetConfig

SPECIALS = ("<|endoftext|>", "<|mask|>")
VOCABULARY = 256 + len(SPECIALS)
LAYERS = 2
CONTEXT = 512
BLOCK = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a target and its drafter lie."""

    target: Path
    draft: Path


def write(root: Path, *, seed: int = 7) -> Folders:
    """Write a target and a drafter drawn from this seed."""
    rng = np.random.default_rng(seed)
    shape: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "intermediate_size": 64,
        "max_position_embeddings": CONTEXT,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-5,
    }
    target = TargetConfig(**shape, num_hidden_layers=LAYERS, eos_token_id=0)
    draft = DraftConfig(
        **shape, num_hidden_layers=1, block_size=BLOCK, mask_token_id=1, target_layer_ids=(0, LAYERS - 1)
    )
    _folder(root / "target", target.document(), weights.target_shapes(target), rng)
    _folder(root / "dflash", draft.document(), weights.draft_shapes(draft), rng)
    _tokenizer().save(str(root / "target" / "tokenizer.json"))
    return Folders(target=root / "target", draft=root / "dflash")


def _folder(
    folder: Path, config: dict[str, object], shapes: dict[str, tuple[int, ...]], rng: np.random.Generator
) -> None:
    """Write one model's two files."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = {
        name: (rng.normal(0.0, 0.3, shape) + (1.0 if len(shape) == 1 else 0.0)).astype(np.float16)
        for name, shape in shapes.items()
    }
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def _tokenizer() -> tokenizers.Tokenizer:
    """Return a tokenizer of bytes: the special tokens, then one token a byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: len(SPECIALS) + index for index, character in enumerate(alphabet)}
    vocabulary |= {text: index for index, text in enumerate(SPECIALS)}
    built = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens(list(SPECIALS))
    return built
