"""Near misses: the closest known name, or none."""

from __future__ import annotations

import pytest

from specctl.fleet.suggest import listed, nearest


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("optoins", ["env", "options", "option"], "options"),
        ("tree-budget", ["block_size", "tree_budget"], "tree_budget"),
        ("CT200", ["ct201", "ct200"], "ct200"),
        ("colour", ["hosts", "groups"], None),
        ("hosts", ["hosts"], None),
        ("x", [], None),
    ],
)
def test_the_closest_name_is_meant(word: str, known: list[str], expected: str | None) -> None:
    """Case and dashes count for nothing, other differences for little, and a far guess is no guess."""
    assert nearest(word, known) == expected


def test_many_names_are_cut() -> None:
    """A sentence lists a few names and counts the rest."""
    assert listed(["a", "b"]) == "a, b"
    assert listed([]) == "none"
    assert listed([str(n) for n in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
