"""Linear DFlash: a draft counts only while every draft before it counted."""

from __future__ import annotations

import numpy as np

from specctl.lab.linear import accept_lengths


def test_acceptance_ends_at_the_first_disagreement() -> None:
    """Drafts are accepted up to the first one that is not the target's token; later agreement does not count."""
    candidates = np.array([[9, 1, 2, 3], [9, 1, 2, 3], [9, 1, 2, 3], [9, 1, 2, 3]])
    picked = np.array([[1, 2, 3, 7], [1, 2, 8, 7], [1, 8, 3, 7], [8, 2, 3, 7]])
    assert accept_lengths(candidates, picked).tolist() == [3, 2, 1, 0]
