"""What the machine has left and what a KV pool takes, in bytes; the lab's stand-in for GPU memory."""

from __future__ import annotations

from pathlib import Path

from specctl.lab.config import DraftConfig, TargetConfig

FLOAT32_BYTES = 4
_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int:
    """Return the memory that the kernel says is available; 0 where it does not say."""
    if not _MEMINFO.exists():
        return 0
    lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    found = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return 0 if found is None else int(found.split()[1]) * 1024


def kv_bytes(config: TargetConfig | DraftConfig, tokens: int) -> int:
    """Return what the keys (or the values) of so many tokens take."""
    return config.num_hidden_layers * config.num_key_value_heads * config.head_dim * tokens * FLOAT32_BYTES
