"""Chance from a seed: the one place in the pure packages that draws, so that a run is told again by its seed."""

from __future__ import annotations

from random import Random


def seeded(seed: int) -> Random:
    """Return a generator that draws the same for the same seed."""
    return Random(seed)
