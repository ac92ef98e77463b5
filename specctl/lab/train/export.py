"""Writes a trained model as it is shipped: fp16 safetensors, `config.json` and, for the target, `tokenizer.json`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.models import TOKENIZER_FILE
from specctl.lab.weights import CONFIG_FILE, WEIGHTS_FILE


def write(model: nn.Module, config: TargetConfig | DraftConfig, folder: Path, tokenizer: Path | None) -> None:
    """Write a model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.to(torch.float16).contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / WEIGHTS_FILE)
    (folder / WEIGHTS_FILE).chmod(0o644)
    (folder / CONFIG_FILE).write_text(json.dumps(config.document(), indent=2) + "\n", encoding="utf-8")
    if tokenizer is not None:
        shutil.copyfile(tokenizer, folder / TOKENIZER_FILE)


def round_to_shipped(model: nn.Module) -> None:
    """Give a model the weights that its shipped file holds: fp16, upcast."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(torch.float16).to(torch.float32))
