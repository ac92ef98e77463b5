"""How many examples a property is tried with: its own number in `make unit`, many times that in `make soak`."""

from __future__ import annotations

import os

SOAKING = os.environ.get("SPECCTL_SOAK") == "1"
SOAK_FACTOR = 20


def examples(count: int) -> int:
    """Return the count, or a soak's multiple of it."""
    return count * SOAK_FACTOR if SOAKING else count
