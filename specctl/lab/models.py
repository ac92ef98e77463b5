"""The lab's models in memory: a target, its tokenizer and perhaps a drafter, loaded together and checked to fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from specctl.lab import weights
from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.drafter import Drafter
from specctl.lab.errors import ModelError
from specctl.lab.forward import Target
from specctl.lab.tokenizer import Tokenizer

TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What an engine decodes with; `draft` is None where only algo none can run."""

    tokenizer: Tokenizer
    target: Target
    draft: Drafter | None
    weight_bytes: int


def load_models(target_path: Path, draft_path: Path | None) -> Models:
    """Load the folders; raise ModelError for files that are missing, corrupt or do not fit each other."""
    target_config = weights.read_config(target_path, TargetConfig)
    target = Target(target_config, weights.read_tensors(target_path, weights.target_shapes(target_config)))
    tokenizer = Tokenizer.load(target_path / TOKENIZER_FILE)
    if tokenizer.vocab_size > target_config.vocab_size:
        raise ModelError(
            f"{target_path}: the tokenizer has {tokenizer.vocab_size} tokens, the model {target_config.vocab_size}"
        )
    size = weights.weight_bytes(target_path)
    if draft_path is None:
        return Models(tokenizer=tokenizer, target=target, draft=None, weight_bytes=size)
    draft_config = weights.read_config(draft_path, DraftConfig)
    refuse_mismatch(target_config, draft_config, str(draft_path))
    tensors = weights.read_tensors(draft_path, weights.draft_shapes(draft_config))
    size += weights.weight_bytes(draft_path)
    return Models(tokenizer=tokenizer, target=target, draft=Drafter(draft_config, tensors, target), weight_bytes=size)


def refuse_mismatch(target: TargetConfig, draft: DraftConfig, where: str) -> None:
    """Raise ModelError unless the drafter was made for a target of this shape."""
    if draft.vocab_size != target.vocab_size:
        raise ModelError(f"{where}: the drafter has {draft.vocab_size} tokens, the target {target.vocab_size}")
    if draft.hidden_size != target.hidden_size:
        raise ModelError(
            f"{where}: the drafter's hidden_size is {draft.hidden_size}, the target's {target.hidden_size}"
        )
    if max(draft.target_layer_ids) >= target.num_hidden_layers:
        raise ModelError(
            f"{where}: target_layer_ids names layer {max(draft.target_layer_ids)} of {target.num_hidden_layers}"
        )
