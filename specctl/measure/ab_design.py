"""The order of an A/B experiment's segments: mirrored cycles (ABBA), so that a steady drift weighs on every arm alike; pure."""

from __future__ import annotations

from specctl.measure.chance import seeded

LETTERS = "ABC"


def order(arms: int, cycles: int, seed: int) -> tuple[int, ...]:
    """Return which arm each segment measures: `cycles` times the arms there and back, the first order drawn from the seed.

    Each cycle is a mirror (ABBA, with a third arm ABCCBA), which cancels a drift that goes straight within it; the next one begins
    with the next arm (ABBA BAAB), which over two cycles cancels a bent one too (D. R. Cox, "Some systematic experimental designs",
    Biometrika 38, 1951). Raises ValueError for fewer than two arms or no cycle.
    """
    if arms < 2 or cycles < 1:
        raise ValueError("an experiment has two arms at least, and one cycle")
    first = list(range(arms))
    seeded(seed).shuffle(first)
    found: list[int] = []
    for cycle in range(cycles):
        turn = cycle % arms
        there = first[turn:] + first[:turn]
        found += [*there, *reversed(there)]
    return tuple(found)


def letters(places: tuple[int, ...], arms: int) -> str:
    """Return the order as people write it, a cycle a word: ABBA BAAB."""
    size = 2 * arms
    words = [places[start : start + size] for start in range(0, len(places), size)]
    return " ".join("".join(LETTERS[arm] for arm in word) for word in words)
