"""Write small model folders with random weights, for tests that start the lab's real server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers

from specctl.lab import weights
from specctl.lab.config import DraftConfig, TargetConfig

SPECIALS = ("<|endoftext|>", "<|mask|>")
VOCABULARY = 256 + len(SPECIALS)
LAYERS = 2
CONTEXT = 512
BLOCK = 8


BEAT = (70, 90, 110)
"""The three tokens that the metronome repeats."""
_SHAPE: dict[str, Any] = {
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
TARGET = TargetConfig(**_SHAPE, num_hidden_layers=LAYERS, eos_token_id=0)
DRAFT = DraftConfig(**_SHAPE, num_hidden_layers=1, block_size=BLOCK, mask_token_id=1, target_layer_ids=(0, LAYERS - 1))
Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a target and its drafter lie."""

    target: Path
    draft: Path


def write(root: Path, *, seed: int = 7) -> Folders:
    """Write a target and a drafter with random weights: they hardly ever agree."""
    rng = np.random.default_rng(seed)
    return _pair(root, _drawn(weights.target_shapes(TARGET), rng), _drawn(weights.draft_shapes(DRAFT), rng))


def write_metronome(root: Path) -> Folders:
    """Write a target that repeats three tokens for ever and a drafter that knows the beat but not where it is.

    After one of the three tokens every draft of a chain is right, after the others none is; a tree also holds the second guess.
    """
    rng = np.random.default_rng(11)
    directions = rng.normal(size=(VOCABULARY, TARGET.hidden_size))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    following = np.full(VOCABULARY, BEAT[0])
    following[list(BEAT)] = np.roll(BEAT, -1)
    target = _without_layers(_drawn(weights.target_shapes(TARGET), rng))
    target |= {
        "embed_tokens.weight": directions[following],
        "lm_head.weight": directions,
        "norm.weight": np.ones(TARGET.hidden_size),
    }
    draft = _without_layers(_drawn(weights.draft_shapes(DRAFT), rng))
    first, second = ([BEAT[(depth + shift) % len(BEAT)] for depth in range(BLOCK)] for shift in (0, 1))
    draft |= {
        "block_embed.weight": directions[first] + 0.6 * directions[second],
        "norm.weight": np.ones(DRAFT.hidden_size),
    }
    return _pair(root, target, draft)


def _without_layers(tensors: dict[str, Array]) -> dict[str, Array]:
    """Return the tensors with layers that add nothing."""
    return {
        name: 0 * tensor if name.endswith(("o_proj.weight", "down_proj.weight")) else tensor
        for name, tensor in tensors.items()
    }


def _drawn(shapes: dict[str, tuple[int, ...]], rng: np.random.Generator) -> dict[str, Array]:
    """Draw matrices around zero and gains around one."""
    return {name: rng.normal(0.0, 0.3, shape) + (1.0 if len(shape) == 1 else 0.0) for name, shape in shapes.items()}


def _pair(root: Path, target: dict[str, Array], draft: dict[str, Array]) -> Folders:
    """Write both folders."""
    folders = Folders(target=root / "target", draft=root / "dflash")
    _folder(folders.target, TARGET.document(), target)
    _folder(folders.draft, DRAFT.document(), draft)
    _tokenizer().save(str(folders.target / "tokenizer.json"))
    return folders


def _folder(folder: Path, config: dict[str, object], tensors: dict[str, Array]) -> None:
    """Write one model's two files."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    halves = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    safetensors.numpy.save_file(halves, folder / "model.safetensors")


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
