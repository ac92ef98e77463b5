"""What a token may see, against definitions written as plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specctl.lab import masks
from specctl.lab.cache import Ints

lengths = st.lists(st.integers(0, 6), min_size=1, max_size=4).map(lambda row: np.array(row, dtype=np.int64))


@given(lengths=lengths, tokens=st.integers(1, 5))
def test_a_chain_sees_its_prefix_and_what_came_before(lengths: Ints, tokens: int) -> None:
    """Token i of a row sees exactly the slots up to its own."""
    mask = masks.chain_mask(lengths, tokens)
    for row, length in enumerate(lengths):
        for token in range(tokens):
            assert np.flatnonzero(mask[row, token] == 0).tolist() == list(range(length + token + 1))


@given(lengths=lengths, tokens=st.integers(1, 5))
def test_a_draft_block_sees_its_prefix_and_itself_whole(lengths: Ints, tokens: int) -> None:
    """Every token of a block sees the prefix and all tokens of the block, in both directions."""
    mask = masks.block_mask(lengths, tokens)
    for row, length in enumerate(lengths):
        assert np.flatnonzero(mask[row, 0] == 0).tolist() == list(range(length + tokens))
    assert mask.shape == (len(lengths), 1, max(lengths) + tokens)


@given(lengths=lengths, drawn=st.lists(st.integers(0, 100), min_size=0, max_size=9))
def test_a_node_sees_its_prefix_and_its_ancestors_only(lengths: Ints, drawn: list[int]) -> None:
    """No sibling, cousin or descendant is visible, on any tree."""
    parents = np.array([[0, *(choice % (index + 1) for index, choice in enumerate(drawn))]] * len(lengths))
    mask = masks.tree_mask(lengths, parents)
    for row, length in enumerate(lengths):
        for node in range(parents.shape[1]):
            line = {node}
            while min(line) > 0:
                line.add(int(parents[row, min(line)]))
            seen = [*range(length), *(length + ancestor for ancestor in sorted(line))]
            assert np.flatnonzero(mask[row, node] == 0).tolist() == seen


def test_a_chain_written_as_a_tree_has_the_chains_mask_and_positions() -> None:
    """The two ways to verify one chain look at the same slots from the same positions."""
    lengths, chain = np.array([3, 5]), np.array([[0, 0, 1, 2]] * 2)
    depths = np.array([[0, 1, 2, 3]] * 2)
    np.testing.assert_array_equal(masks.tree_mask(lengths, chain), masks.chain_mask(lengths, 4))
    np.testing.assert_array_equal(masks.tree_positions(lengths, depths), masks.chain_positions(lengths, 4))


def test_siblings_share_a_position() -> None:
    """A node's position is its row's length plus its depth, whatever its index."""
    assert masks.tree_positions(np.array([10]), np.array([[0, 1, 1, 1, 2]])).tolist() == [[10, 11, 11, 11, 12]]
