"""Measure a model's weights on the host: what its files say, and which of the files that its index names are missing."""

from __future__ import annotations

import json
import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from specctl.host import files

SUFFIX = ".safetensors"
OTHERS = (".bin", ".pt", ".pth", ".gguf")
INDEX = ".safetensors.index.json"
INDEX_BYTES = 64 << 20


class Weights(NamedTuple):
    """The size of a model's weights (None: not known), the files of its index that are missing, and how many files there are."""

    size_bytes: Optional[int]
    missing: Tuple[str, ...]
    files: int


def _index(folder: str, names: List[str]) -> Dict[str, object]:
    for name in names:
        if name.endswith(INDEX):
            try:
                found = json.loads(files.read(os.path.join(folder, name), INDEX_BYTES) or b"{}")
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def measure(folder: str) -> Optional[Weights]:
    """Sum up a model folder's safetensors (links followed); else what its index says; None when there is no such folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    index = _index(folder, names)
    listed = index.get("weight_map")
    expected = {str(name) for name in listed.values()} if isinstance(listed, dict) else set()
    there = [name for name in names if name.endswith(SUFFIX) and os.path.exists(os.path.join(folder, name))]
    others = [name for name in names if name.endswith(OTHERS)]
    missing = tuple(sorted(expected - set(there)))
    if there and not missing:
        return Weights(sum(os.path.getsize(os.path.join(folder, name)) for name in there), (), len(there))
    about = index.get("metadata")
    total = about.get("total_size") if isinstance(about, dict) else None
    return Weights(total if isinstance(total, int) else None, missing, len(there) or len(others))
