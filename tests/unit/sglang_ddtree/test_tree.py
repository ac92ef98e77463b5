"""The plugin's tree in plain Python: the best of its size, the lab engine's own, and a walk that takes what the target says."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_ddtree import tree
from specctl.lab.tree import best_first
from tests.examples import examples
from tests.unit.sglang_ddtree.drawn import Draft, drafts

Path = tuple[int, ...]


def grown(draft: Draft, budget: int) -> tree.Tree:
    """Return the tree of a draft."""
    return tree.grow(draft.root, draft.tokens, draft.scores, budget)


def paths(found: tree.Tree) -> list[Path]:
    """Return each node's tokens from below the root down to it."""
    known: list[Path] = [()]
    for node in range(1, len(found.tokens)):
        known.append((*known[found.parents[node]], found.tokens[node]))
    return known


def mass(wanted: set[Path], draft: Draft) -> float:
    """Return the expected accepted depth under the surrogate: the sum over nodes of their paths' probabilities."""
    places = [dict(zip(ids, row, strict=True)) for ids, row in zip(draft.tokens, draft.scores, strict=True)]
    return sum(math.exp(sum(places[depth][token] for depth, token in enumerate(path))) for path in wanted)


def best_mass(draft: Draft, budget: int) -> float:
    """Return the largest mass of any tree of that many nodes, by trying all of them."""
    every = [path for depth in range(1, len(draft.tokens) + 1) for path in itertools.product(*draft.tokens[:depth])]
    choices = (set(some) for some in itertools.combinations(every, min(budget, len(every))))
    whole = (some for some in choices if all(len(path) == 1 or path[:-1] in some for path in some))
    return max(mass(some, draft) for some in whole)


@settings(max_examples=examples(150), deadline=None)
@given(
    draft=drafts().filter(lambda one: sum(len(one.tokens[0]) ** depth for depth in range(1, len(one.tokens) + 1)) < 15),
    budget=st.integers(1, 4),
)
def test_no_tree_of_its_size_is_better(draft: Draft, budget: int) -> None:
    """Best first finds the largest expected accepted depth that trying every tree finds."""
    found = set(paths(grown(draft, budget))[1:])
    assert math.isclose(mass(found, draft), best_mass(draft, budget), rel_tol=1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(draft=drafts(), budget=st.integers(0, 40))
def test_tree_is_whole(draft: Draft, budget: int) -> None:
    """A tree has as many nodes as it may or can, parents before children, no path twice, and costs that only rise."""
    found = grown(draft, budget)
    possible = sum(len(draft.tokens[0]) ** depth for depth in range(len(draft.tokens) + 1))
    assert len(found.tokens) == min(budget + 1, possible)
    assert all(parent < node for node, parent in enumerate(found.parents) if node)
    assert all(found.depths[node] == found.depths[found.parents[node]] + 1 for node in range(1, len(found.tokens)))
    assert len(set(paths(found))) == len(found.tokens)
    assert list(found.costs) == sorted(found.costs)


@settings(max_examples=examples(150), deadline=None)
@given(draft=drafts(), budget=st.integers(1, 40))
def test_tree_is_that_of_the_lab_engine(draft: Draft, budget: int) -> None:
    """Node by node, ties included, the plugin drafts what the lab engine drafts: figures of one hold for the other."""
    theirs = best_first(draft.scores, budget)
    found = grown(draft, budget)
    ranks = [
        draft.tokens[depth - 1].index(token) for token, depth in zip(found.tokens, found.depths, strict=True) if depth
    ]
    assert list(zip(found.parents[1:], found.depths[1:], ranks, strict=True)) == theirs


def test_what_has_no_probability_is_not_drafted() -> None:
    """A token that cannot come, and all that would come after it, is left out however large the budget."""
    never = float("-inf")
    found = tree.grow(7, [[1, 2], [3, 4]], [[-0.5, never], [-0.25, never]], 10)
    assert found == tree.Tree(tokens=(7, 1, 3), parents=(0, 0, 1), depths=(0, 1, 2), costs=(0.0, 0.5, 0.75))


def test_one_alternative_a_depth_is_a_chain() -> None:
    """With one alternative a depth and a budget of all depths the tree is the linear draft."""
    found = tree.grow(9, [[1], [2], [3]], [[-1.0], [-2.0], [-0.5]], 3)
    assert (found.tokens, found.parents) == ((9, 1, 2, 3), (0, 0, 1, 2))


@settings(max_examples=examples(150), deadline=None)
@given(draft=drafts(), budget=st.integers(0, 30))
def test_node_sees_its_way_to_the_root_alone(draft: Draft, budget: int) -> None:
    """The mask of a node is itself and its ancestors, and its position is that of a token at its depth."""
    found = grown(draft, budget)
    for node, row in enumerate(tree.ancestors(found)):
        way, at = {node}, node
        while at:
            at = found.parents[at]
            way.add(at)
        assert {other for other, seen in enumerate(row) if seen} == way
    assert tree.positions(found, 10) == [10 + depth for depth in found.depths]


@settings(max_examples=examples(100), deadline=None)
@given(draft=drafts(vocabulary=6), budget=st.integers(0, 30), text=st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_committed_tokens_are_the_targets(draft: Draft, budget: int, text: list[int]) -> None:
    """Whatever was drafted, the committed tokens are what the target says one by one, as long as the tree had them."""
    found = grown(draft, budget)
    way = paths(found)
    path, committed = tree.walk(found, lambda node: text[len(way[node])])
    assert committed == text[: len(path)]
    assert way[path[-1]] == tuple(text[: len(path) - 1])
    assert (*way[path[-1]], committed[-1]) not in way


def test_draws_along_the_path_have_the_targets_distribution() -> None:
    """Over all draws at all nodes, the committed texts' probabilities are those of drawing token by token: exact, no chance."""
    weights = {(): [1, 2, 1], (0,): [3, 1, 0], (1,): [0, 1, 1], (2,): [1, 1, 1]}
    found = tree.grow(9, [[1, 0], [2, 0]], [[-0.5, -1.0], [-0.25, -2.0]], 4)
    way = paths(found)
    inner = [node for node, path in enumerate(way) if path in weights]
    seen: Counter[Path] = Counter()
    for draws in itertools.product(range(3), repeat=len(inner)):
        chance = Fraction(1)
        for node, token in zip(inner, draws, strict=True):
            chance *= Fraction(weights[way[node]][token], sum(weights[way[node]]))
        drawn = dict(zip(inner, draws, strict=True))
        _, committed = tree.walk(found, lambda node, drawn=drawn: drawn.get(node, 0))  # type: ignore[misc]  # a default binds it
        seen[tuple(committed[:2])] += chance  # type: ignore[assignment]  # Counter holds fractions as well
    for first, second in itertools.product(range(3), repeat=2):
        row = weights[()]
        alone = Fraction(row[first], sum(row))
        if (first,) in way:
            after = weights[(first,)]
            assert seen[(first, second)] == alone * Fraction(after[second], sum(after))
        else:
            assert seen[(first,)] == alone
