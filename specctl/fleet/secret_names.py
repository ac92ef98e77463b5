"""How options and variables that carry secrets are named; read by the inventory's check and by the linter, also on a GPU host."""

from __future__ import annotations

import re
from collections.abc import Mapping

KEY_LIKE = re.compile(
    r"(^|[_-])(api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?token|token|secret|passwd|password|credentials?)$",
    re.IGNORECASE,
)
# What some engine calls them, and the key of secrets: that carries them.
CARRIED: Mapping[str, str] = {
    "--api-key": "api_key",
    "--admin-api-key": "admin_api_key",
    "--hf-token": "hf_token",
    "HF_TOKEN": "hf_token",
    "HUGGING_FACE_HUB_TOKEN": "hf_token",
    "HUGGINGFACE_HUB_TOKEN": "hf_token",
}
