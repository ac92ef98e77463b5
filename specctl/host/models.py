"""What a model's folder says of it: its weights' files, and the few fields of config.json that decide whether it fits."""

from __future__ import annotations

import json
import os
from typing import Dict, List, Mapping, Optional

from specctl.host import files, weights

CONFIG = "config.json"
CONFIG_BYTES = 4 << 20
NAMED = 5  # of missing files, so many by name
# Where a field is looked for, in this order; the nested parts are those of models with several halves, and of DFlash drafts.
PARTS = ("text_config", "llm_config", "language_config", "dflash_config")
NUMBERS: Mapping[str, str] = {
    "hidden_size": "hidden_size",
    "vocab_size": "vocab_size",
    "num_hidden_layers": "layers",
    "num_target_layers": "target_layers",
    "max_position_embeddings": "max_positions",
    "block_size": "block_size",
    "mask_token_id": "mask_token",
}


def _whole(value: object) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parts(config: Mapping[str, object]) -> List[Mapping[str, object]]:
    nested = [config.get(name) for name in PARTS]
    return [config, *(part for part in nested if isinstance(part, dict))]


def _first(parts: List[Mapping[str, object]], name: str) -> object:
    return next((part[name] for part in parts if part.get(name) is not None), None)


def essentials(config: Mapping[str, object]) -> Dict[str, object]:
    """Return the fields that decide whether a model fits, each None where the configuration does not say."""
    parts = _parts(config)
    found: Dict[str, object] = {ours: _whole(_first(parts, theirs)) for theirs, ours in NUMBERS.items()}
    layers = _first(parts, "target_layer_ids")
    architectures = _first(parts, "architectures")
    quantised = _first(parts, "quantization_config") or _first(parts, "compression_config")
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    kind = _first(parts, "model_type")
    return {
        **found,
        "target_layer_ids": [n for n in layers if _whole(n) is not None] if isinstance(layers, list) else None,
        "architectures": [str(name) for name in architectures[:4]] if isinstance(architectures, list) else [],
        "model_type": kind if isinstance(kind, str) else None,
        "quantisation": method if isinstance(method, str) else None,
    }


def _config(folder: str) -> Optional[Dict[str, object]]:
    content = files.read(os.path.join(folder, CONFIG), CONFIG_BYTES)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return essentials(found) if isinstance(found, dict) else None


def describe(path: str) -> Dict[str, object]:
    """Return what is known of the model in a folder; `there` false: no such folder, or it may not be read."""
    found = weights.measure(path)
    if found is None:
        return {"path": path, "there": False}
    return {
        "path": path,
        "there": True,
        "size_bytes": found.size_bytes,
        "files": found.files,
        "missing": list(found.missing[:NAMED]),
        "missing_count": len(found.missing),
        "config": _config(path),
    }
