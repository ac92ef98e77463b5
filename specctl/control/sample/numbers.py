"""Read numbers out of foreign text and JSON: what is no plain, finite, sensible number is None, whatever it is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

LARGEST = 1e15
"""No count or sum of an engine is larger: a petatoken."""
MAX_WORD = 32
_PLAIN = frozenset("0123456789.eE+-")


def amount(value: object) -> float | None:
    """Return a number of 0 or more; None for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST else None


def count(value: object) -> int | None:
    """Return a whole number of 0 or more; 2.0 counts as one."""
    found = amount(value)
    return int(found) if found is not None and found == math.floor(found) else None


def word(text: str) -> float | None:
    """Return the number that a word of text spells; None for NaN, infinities, signs of less than nothing and long words."""
    if len(text) > MAX_WORD or not _PLAIN.issuperset(text):
        return None
    try:
        return amount(float(text))
    except ValueError:
        return None


def mapping(value: object) -> Mapping[str, object] | None:
    """Return a JSON object as a mapping; None for anything else."""
    return value if isinstance(value, dict) else None


def parsed(body: bytes, limit: int) -> object:
    """Return what JSON text says; None where it says nothing, is no JSON, is nested too deep or longer than `limit` bytes."""
    if len(body) > limit:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
