"""DDTree: the tree is the best of its size, and the walk takes what the target says."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.lab.tree import Trees, best_first, grow, top, walk
from tests.examples import examples

Path = tuple[int, ...]

# Percentages rather than floats: hypothesis draws floats from so few values that paths of equal weight hide mistakes.
depths = st.lists(
    st.lists(st.integers(1, 48), min_size=1, max_size=2).map(
        lambda row: sorted((math.log(percent / 100) for percent in row), reverse=True)
    ),
    min_size=1,
    max_size=3,
)


def paths_of(nodes: list[tuple[int, int, int]]) -> list[Path]:
    """Return each node's ranks from the root down."""
    paths: list[Path] = [()]
    for parent, _, rank in nodes:
        paths.append((*paths[parent], rank))
    return paths[1:]


def mass(paths: list[Path], scores: list[list[float]]) -> float:
    """Return the surrogate: the sum over nodes of the probability that all of a path's tokens are right."""
    return sum(math.exp(sum(scores[depth][rank] for depth, rank in enumerate(path))) for path in paths)


def brute_force(scores: list[list[float]], budget: int) -> float:
    """Return the surrogate of the best tree of at most `budget` nodes, by trying all of them."""
    every = [
        path
        for depth in range(1, len(scores) + 1)
        for path in itertools.product(*(range(len(row)) for row in scores[:depth]))
    ]
    size = min(budget, len(every))
    trees = (set(nodes) for nodes in itertools.combinations(every, size))
    whole = (tree for tree in trees if all(len(path) == 1 or path[:-1] in tree for path in tree))
    return max(mass(list(tree), scores) for tree in whole)


@settings(max_examples=examples(200), deadline=None)
@given(scores=depths, budget=st.integers(1, 5))
def test_no_tree_of_this_size_has_a_larger_surrogate(scores: list[list[float]], budget: int) -> None:
    """Best-first search finds the maximum that trying every tree finds."""
    assert math.isclose(mass(paths_of(best_first(scores, budget)), scores), brute_force(scores, budget), rel_tol=1e-9)


@given(scores=depths, budget=st.integers(1, 20))
def test_the_nodes_make_a_tree_within_budget(scores: list[list[float]], budget: int) -> None:
    """Parents come first, a child is one deeper than its parent, no path appears twice, the budget is used up if it can be."""
    nodes = best_first(scores, budget)
    node_depths = [0, *(depth for _, depth, _ in nodes)]
    assert all(parent <= index and depth == node_depths[parent] + 1 for index, (parent, depth, _) in enumerate(nodes))
    room = sum(math.prod(len(row) for row in scores[:depth]) for depth in range(1, len(scores) + 1))
    assert len(set(paths_of(nodes))) == len(nodes) == min(budget, room)


def test_a_likely_sibling_comes_before_an_unlikely_child() -> None:
    """A child's worth is its whole path's: a poor next depth loses to a second choice at this one."""
    scores = [[math.log(0.45), math.log(0.1)], [math.log(0.01)]]
    assert best_first(scores, 2) == [(0, 1, 0), (0, 1, 1)]


def test_one_alternative_a_depth_gives_a_chain() -> None:
    """With top-k 1 the tree is a chain as deep as the budget."""
    assert best_first([[-0.5], [-3.0], [-0.1]], 2) == [(0, 1, 0), (1, 2, 0)]


def test_top_ranks_tokens_with_their_log_probabilities() -> None:
    """The best tokens come first, ties in token order, and their scores are the softmax's logarithms."""
    logits = np.log(np.array([[[0.1, 0.3, 0.2, 0.3, 0.1]]], dtype=np.float32))
    tokens, scores = top(logits, 3)
    assert tokens.tolist() == [[[1, 3, 2]]]
    np.testing.assert_allclose(np.exp(scores), [[[0.3, 0.3, 0.2]]], rtol=1e-6)


def test_top_one_is_the_argmax() -> None:
    """The single best token is linear's draft, also in a tie."""
    logits = np.array([[[1.0, 2.0, 2.0], [0.5, 0.0, 0.5]]], dtype=np.float32)
    assert top(logits, 1)[0][..., 0].tolist() == logits.argmax(axis=-1).tolist()


def test_grow_places_tokens_by_depth_and_pads_small_trees() -> None:
    """A node's token is its depth's token of its rank; a row whose tree is smaller is padded with nodes nobody owns."""
    logits = np.log(np.array([[[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]], dtype=np.float32))
    trees = grow(np.array([9]), logits, budget=4, topk=2)
    assert trees.tokens.tolist() == [[9, 0, 1, 2, 1]]
    assert trees.parents.tolist() == [[0, 0, 1, 1, 0]]
    assert trees.depths.tolist() == [[0, 1, 2, 2, 1]]
    assert trees.counts.tolist() == [5]


def _trees() -> Trees:
    """Return two rows of one shape, root 0 → 1 → 2 and 0 → 3, the second row's last node being padding."""
    return Trees(
        tokens=np.array([[9, 4, 5, 6], [9, 4, 5, 9]]),
        parents=np.array([[0, 0, 1, 0], [0, 0, 1, 0]]),
        depths=np.array([[0, 1, 2, 1], [0, 1, 2, 0]]),
        counts=np.array([4, 3]),
    )


def test_the_walk_goes_as_far_as_the_target_agrees() -> None:
    """The walk descends to the child that is the target's token and stops where there is none."""
    picked = np.array([[4, 5, 7, 8], [4, 6, 5, 5]])
    paths, accepted = walk(_trees(), picked)
    assert accepted.tolist() == [2, 1]
    assert paths.tolist() == [[0, 1, 2], [0, 1, 1]]


def test_the_walk_takes_a_sibling_and_never_resumes() -> None:
    """An alternative at the first depth is accepted; a walk that ended does not go on below, and padding is nobody's child."""
    paths, accepted = walk(_trees(), np.array([[6, 5, 0, 9], [9, 5, 0, 9]]))
    assert accepted.tolist() == [1, 0]
    assert paths.tolist() == [[0, 3, 3], [0, 0, 0]]
