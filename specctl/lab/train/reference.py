"""Logits of the torch models on a fixed text, stored so that the numpy forwards can be held to them without torch."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.lab import weights
from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.models import TOKENIZER_FILE
from specctl.lab.tokenizer import Tokenizer
from specctl.lab.train.draft_model import Draft
from specctl.lab.train.target_model import Target

TEXTS = (
    'def read(path):\n    """Return the lines of a file."""\n    with open(path, encoding="utf-8") as file:\n        return',
    "class Queue:\n    def __init__(self, maxsize=0):\n        self.maxsize = maxsize\n        self._items = []\n\n    def put",
)
KEPT = 4


def load(models: Path) -> tuple[Target, Draft]:
    """Load both model folders into torch, upcast as they are served."""
    target = Target(weights.read_config(models / "target", TargetConfig))
    draft = Draft(weights.read_config(models / "dflash", DraftConfig))
    for folder, model in (("target", target), ("dflash", draft)):
        stored = load_file(models / folder / weights.WEIGHTS_FILE)
        model.load_state_dict({name: tensor.to(torch.float32) for name, tensor in stored.items()})
    return target, draft


def logits(target: Target, draft: Draft, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the target's logits [tokens, vocabulary] and the drafter's [block - 1, vocabulary] after the last token."""
    with torch.no_grad():
        trace = target.trace(tokens[None])
        features = torch.stack([trace[index] for index in draft.config.target_layer_ids], dim=2)[:, :-1]
        anchor = torch.tensor([[len(tokens) - 1]])
        hidden = draft(features, target.embed_tokens(tokens[-1:])[None], anchor)
        return target.lm_head(target.norm(trace[-1]))[0], target.lm_head(hidden)[0, 0, 1:]


def write(models: Path, path: Path) -> None:
    """Write the texts' tokens and the logits of both models, the target's for the last few tokens."""
    target, draft = load(models)
    tokenizer = Tokenizer.load(models / "target" / TOKENIZER_FILE)
    stored: dict[str, Tensor] = {}
    for index, text in enumerate(TEXTS):
        tokens = torch.tensor(tokenizer.encode(text))
        verified, drafted = logits(target, draft, tokens)
        stored[f"tokens.{index}"] = tokens
        stored[f"target.{index}"] = verified[-KEPT:].contiguous()
        stored[f"draft.{index}"] = drafted.contiguous()
    save_file(stored, path, metadata={"source": "python -m specctl.lab.train", "licence": "Apache-2.0"})
