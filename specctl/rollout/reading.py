"""Read values of unknown type that a host answered: each function returns what it was asked for, or None; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

LARGEST = 2**63


def mapping(value: object) -> Mapping[str, object]:
    """Return an object, an empty one where it is none."""
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> tuple[Mapping[str, object], ...]:
    """Return the objects of a list; what is no list has none."""
    return tuple(row for row in value if isinstance(row, Mapping)) if isinstance(value, list) else ()


def texts(value: object) -> tuple[str, ...]:
    """Return the items of a list as text."""
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def text(value: object) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """Return a whole number of at most 64 bits, so that arithmetic with it ends well; true and false are none."""
    sound = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST
    return value if sound and isinstance(value, int) else None


def wholes(value: object) -> tuple[int, ...]:
    """Return the whole numbers of a list."""
    return tuple(item for item in value if whole(item) is not None) if isinstance(value, list) else ()


def number(value: object) -> float | None:
    """Return a number that is finite."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def claim(value: object) -> bool | None:
    """Return true or false."""
    return value if isinstance(value, bool) else None
