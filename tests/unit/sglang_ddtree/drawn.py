"""Drafts for properties: alternatives of each depth, most probable first, with ties and with sums that are exact."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

# Log-probabilities are sixteenths: their sums are exact in any order, so that ties are ties for every implementation.
GRAIN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A root, and for each depth its alternatives and their log-probabilities; all depths have as many."""

    root: int
    tokens: list[list[int]]
    scores: list[list[float]]


@st.composite
def drafts(draw: st.DrawFn, *, ties: bool = True, vocabulary: int = 40) -> Draft:
    """Draw a draft of up to six depths with up to five alternatives."""
    depths, alternatives = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    grains = st.integers(0, 12 if ties else 2000)
    rows = st.lists(grains, min_size=alternatives, max_size=alternatives, unique=not ties)
    scores = [[-grain / GRAIN for grain in sorted(draw(rows))] for _ in range(depths)]
    ids = st.lists(st.integers(0, vocabulary - 1), min_size=alternatives, max_size=alternatives, unique=True)
    return Draft(root=draw(st.integers(0, vocabulary - 1)), tokens=[draw(ids) for _ in range(depths)], scores=scores)
