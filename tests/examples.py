"""How many examples a property is tried with: its own number in `make test`, many more in `make soak`."""

from __future__ import annotations

import os

SOAKING = os.environ.get("SPECCTL_SOAK") == "1"
SOAK_FACTOR = 20
# What strangers hand in: inventories, names of hosts, answers of engines and hosts, lines of a log, words of a command line.
HOSTILE = 10_000 if SOAKING else 200


def examples(count: int) -> int:
    """Return the count, or a soak's multiple of it."""
    return count * SOAK_FACTOR if SOAKING else count
