"""A screenshot as Rich draws it, made to need no font from the net; pure."""

from __future__ import annotations

import re

FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_FAMILY = re.compile(r"font-family: (?:Fira Code|arial)[^;]*;")


def self_contained(svg: str) -> str:
    """Return an SVG that fetches no font: the reader's own monospaced one fits, since each text has its length."""
    return _FAMILY.sub(f"font-family: {FONTS};", _FACE.sub("", svg))
