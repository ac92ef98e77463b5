"""Small pieces of text that views share: ages, and what is unknown."""

from __future__ import annotations

UNKNOWN = "—"


def plain(text: str) -> str:
    """Return a text fit for a terminal: what would steer it, or cannot be written, is spelled out; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def age(seconds: float | None) -> str:
    """Return an age in the largest unit that keeps two figures: 4 s, 12 min, 3 h, 5 d."""
    if seconds is None:
        return UNKNOWN
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
