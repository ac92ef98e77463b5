"""The batched tree is the reference's, node by node, for every request of a batch at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_ddtree import tree
from tests.examples import examples
from tests.unit.sglang_ddtree.drawn import Draft, drafts

pytest.importorskip("torch", reason="torch is not installed: the batched tree is not tested here")

import torch  # after the check for it

from sglang_ddtree import tree_torch  # after the check for torch

torch.set_num_threads(1)
VOCABULARY = 12


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Draft], int]:
    """Draw up to three drafts of one shape, and a budget."""
    first = draw(drafts(vocabulary=VOCABULARY))
    shape = len(first.tokens), len(first.tokens[0])
    alike = drafts(vocabulary=VOCABULARY).filter(lambda one: (len(one.tokens), len(one.tokens[0])) == shape)
    others = draw(st.lists(alike, max_size=2)) if shape[0] * shape[1] <= 6 else []
    return [first, *others], draw(st.integers(0, 30))


def grown(batch: list[Draft], budget: int) -> tuple[tree_torch.Trees, list[tree.Tree]]:
    """Return the batch's trees, and each request's by the reference."""
    roots = torch.tensor([one.root for one in batch])
    tokens, scores = (torch.tensor([getattr(one, name) for one in batch]) for name in ("tokens", "scores"))
    alone = [tree.grow(one.root, one.tokens, one.scores, budget) for one in batch]
    return tree_torch.grow(roots, tokens, scores, budget), alone


@settings(max_examples=examples(150), deadline=None)
@given(drawn=batches())
def test_trees_are_the_references(drawn: tuple[list[Draft], int]) -> None:
    """Tokens, parents, depths, masks and positions of each request equal the reference's, ties included."""
    trees, alone = grown(*drawn)
    seen = tree_torch.ancestors(trees)
    at = tree_torch.positions(trees, torch.arange(5, 5 + len(alone)))
    for row, one in enumerate(alone):
        size = len(one.tokens)
        assert trees.real[row].tolist() == [node < size for node in range(trees.real.shape[1])]
        assert trees.tokens[row, :size].tolist() == list(one.tokens)
        assert trees.parents[row, :size].tolist() == list(one.parents)
        assert trees.depths[row, :size].tolist() == list(one.depths)
        assert seen[row, :size, :size].tolist() == tree.ancestors(one)
        assert at[row, :size].tolist() == tree.positions(one, 5 + row)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_chain_ends_where_nothing_is_probable(lost: int) -> None:
    """Of a chain, as of a tree, what has no probability is not drafted, nor is anything below it."""
    scores = [[-1.0] if depth != lost else [float("-inf")] for depth in range(3)]
    batch = [
        Draft(root=9, tokens=[[1], [2], [3]], scores=scores),
        Draft(root=8, tokens=[[4], [5], [6]], scores=[[-0.5]] * 3),
    ]
    trees, alone = grown(batch, 5)
    for row, one in enumerate(alone):
        size = len(one.tokens)
        assert (trees.tokens[row, :size].tolist(), trees.parents[row, :size].tolist()) == (
            list(one.tokens),
            list(one.parents),
        )
        assert not trees.real[row, size:].any()
    assert [len(one.tokens) for one in alone] == [lost + 1, 4]


@settings(max_examples=examples(150), deadline=None)
@given(drawn=batches(), chance=st.randoms(use_true_random=False))
def test_walks_are_the_references(drawn: tuple[list[Draft], int], chance: object) -> None:
    """Whatever the target says after each node, path, accepted drafts and committed tokens equal the reference's."""
    trees, alone = grown(*drawn)
    picks = torch.tensor([[chance.randrange(VOCABULARY) for _ in row] for row in trees.tokens.tolist()])  # type: ignore[attr-defined]  # random.Random
    for row, one in enumerate(alone):
        for node in range(1, len(one.tokens)):
            if chance.random() < 0.6:  # type: ignore[attr-defined]  # random.Random
                picks[row, one.parents[node]] = one.tokens[node]
    walked = tree_torch.walk(trees, tree_torch.ancestors(trees), picks, int(trees.depths.max()))
    for row, one in enumerate(alone):
        says = picks[row].tolist()
        path, committed = tree.walk(one, lambda node, says=says: says[node])  # type: ignore[misc]  # a default binds it
        assert walked.accepted[row] == len(path) - 1
        assert walked.path[row].tolist() == path + [path[-1]] * (walked.path.shape[1] - len(path))
        assert walked.committed[row, : len(path)].tolist() == committed


@settings(max_examples=examples(60), deadline=None)
@given(drawn=batches(), more=st.integers(0, 9))
def test_padding_changes_nothing(drawn: tuple[list[Draft], int], more: int) -> None:
    """Padding to a wider pass adds nodes that are nobody's and leaves the walk as it was."""
    trees, _ = grown(*drawn)
    size = trees.tokens.shape[1]
    wide = tree_torch.padded(trees, size + more)
    assert torch.equal(wide.tokens[:, :size], trees.tokens)
    assert not wide.real[:, size:].any()
    picks = torch.zeros_like(wide.tokens) + wide.tokens[:, 1:2] if size > 1 else torch.zeros_like(wide.tokens)
    deepest = int(trees.depths.max())
    narrow = tree_torch.walk(trees, tree_torch.ancestors(trees), picks[:, :size], deepest)
    walked = tree_torch.walk(wide, tree_torch.ancestors(wide), picks, deepest)
    assert torch.equal(walked.path, narrow.path)


@settings(max_examples=examples(60), deadline=None)
@given(drawn=batches())
def test_links_name_first_child_and_next_sibling(drawn: tuple[list[Draft], int]) -> None:
    """A grammar that follows first children and next siblings meets every node once, and no padding."""
    trees, alone = grown(*drawn)
    child, sibling = tree_torch.links(tree_torch.padded(trees, trees.tokens.shape[1] + 2))
    for row, one in enumerate(alone):
        met, open_nodes = [], [0]
        while open_nodes:
            node = open_nodes.pop()
            met.append(node)
            open_nodes += [int(each[row, node]) for each in (child, sibling) if each[row, node] >= 0]
        assert sorted(met) == list(range(len(one.tokens)))


@given(
    rows=st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=1, max_size=3),
    count=st.integers(1, 4),
)
def test_of_equal_logits_the_lower_token_is_better(rows: list[list[int]], count: int) -> None:
    """The best tokens are ordered by logit, equals by id, so that every rank drafts one tree."""
    ids, values = tree_torch.top(torch.tensor(rows, dtype=torch.float32), count)
    wanted = [sorted(range(6), key=lambda token, row=row: (-row[token], token))[:count] for row in rows]  # type: ignore[misc]  # a default binds it
    assert ids.tolist() == wanted
    assert values.tolist() == [[row[token] for token in order] for row, order in zip(rows, wanted, strict=True)]
