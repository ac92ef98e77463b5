"""Speculation changes how many tokens a step commits, never which."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.lab.models import Models
from specctl.lab.types import Mode, Sampling
from tests.examples import examples
from tests.unit.lab.runs import NONE, difference, linear, requests, run, tree

pytestmark = pytest.mark.slow  # whole generations by every mode and batch size

BATCH_SIZES = (1, 2, 3, 5, 8, pytest.param(13, marks=pytest.mark.soak), pytest.param(21, marks=pytest.mark.soak), 32)
MODES = (linear(8), linear(3), tree(7, 1), tree(8, 4), tree(16, 8), tree(64, 32, block_size=5))
GREEDY = Sampling(max_new_tokens=24, ignore_eos=True)
SAMPLED = Sampling(max_new_tokens=24, temperature=0.8, top_p=0.9, top_k=40, seed=5)

modes = st.one_of(
    st.builds(linear, st.integers(2, 8)), st.builds(tree, st.integers(1, 64), st.integers(1, 32), st.integers(2, 8))
)
token_lists = st.lists(st.lists(st.integers(2, 257), min_size=1, max_size=40), min_size=1, max_size=32)


@pytest.mark.parametrize("batch_size", BATCH_SIZES)
def test_greedy_text_is_the_same_with_every_algo(shipped: Models, prompts: list[list[int]], batch_size: int) -> None:
    """Whatever the batch size, linear and every tree return autoregressive decoding's tokens."""
    generations = requests(prompts[:batch_size], GREEDY)
    wanted = run(shipped, NONE, generations)
    for mode in MODES:
        got = run(shipped, mode, generations)
        assert got.tokens == wanted.tokens, f"{mode}: {difference(shipped, generations, wanted, got)}"


def test_greedy_text_is_the_same_alone_and_in_a_batch(shipped: Models, prompts: list[list[int]]) -> None:
    """A request's tokens do not depend on its company."""
    together = run(shipped, tree(16, 8), requests(prompts, GREEDY))
    alone = run(shipped, NONE, requests(prompts, GREEDY), max_running=1)
    assert together.tokens == alone.tokens, difference(shipped, requests(prompts, GREEDY), alone, together)


@settings(max_examples=examples(40), deadline=None)
@given(mode=modes, rows=token_lists, length=st.integers(1, 24), max_running=st.integers(1, 32))
def test_any_knobs_any_batch_same_tokens(
    untrained: Models, mode: Mode, rows: list[list[int]], length: int, max_running: int
) -> None:
    """For any prompts, knobs and room the tokens and the reasons to end are those of no speculation."""
    generations = requests(rows, Sampling(max_new_tokens=length))
    wanted, got = run(untrained, NONE, generations), run(untrained, mode, generations, max_running=max_running)
    assert got.tokens == wanted.tokens, difference(untrained, generations, wanted, got)
    assert (got.finish, got.matched) == (wanted.finish, wanted.matched)


@pytest.mark.soak
@settings(max_examples=300, deadline=None)
@given(data=st.data(), mode=modes, length=st.integers(1, 96), max_running=st.integers(1, 32))
def test_any_knobs_any_prompts_of_the_shipped_models(
    shipped: Models, prompts: list[list[int]], data: st.DataObject, mode: Mode, length: int, max_running: int
) -> None:
    """Parts of real texts, of any length and in any company, come out of any tree as they come out without speculation."""
    parts = st.sampled_from(prompts).flatmap(lambda whole: st.integers(1, len(whole)).map(lambda end: whole[:end]))
    generations = requests(data.draw(st.lists(parts, min_size=1, max_size=8)), Sampling(max_new_tokens=length))
    wanted, got = run(shipped, NONE, generations), run(shipped, mode, generations, max_running=max_running)
    assert got.tokens == wanted.tokens, difference(shipped, generations, wanted, got)


@pytest.mark.parametrize("mode", MODES)
def test_seeded_sampling_is_the_same_with_every_algo(shipped: Models, prompts: list[list[int]], mode: Mode) -> None:
    """With temperature, top-k and top-p too, a seed gives the tokens it gives without speculation."""
    generations = requests(prompts[:6], SAMPLED)
    assert run(shipped, mode, generations).tokens == run(shipped, NONE, generations).tokens


def test_another_seed_gives_another_text(shipped: Models, prompts: list[list[int]]) -> None:
    """The seed matters: two seeds do not sample the same tokens for all prompts."""
    first = run(shipped, tree(8, 4), requests(prompts[:4], SAMPLED))
    second = run(shipped, tree(8, 4), requests(prompts[:4], dataclasses.replace(SAMPLED, seed=6)))
    assert first.tokens != second.tokens


@pytest.mark.parametrize("block_size", [2, 5, 8])
def test_a_tree_of_one_chain_accepts_what_linear_accepts(
    shipped: Models, prompts: list[list[int]], block_size: int
) -> None:
    """Top-k 1 and budget block - 1 make the tree linear's chain: equal accept lengths at every step of every request."""
    generations = requests(prompts, GREEDY)
    chain = run(shipped, linear(block_size), generations)
    one_chain_tree = run(shipped, tree(block_size - 1, 1, block_size), generations)
    assert one_chain_tree.accepted() == chain.accepted()
    assert sum(map(sum, chain.accepted().values())) > 0


def test_a_bigger_tree_accepts_more(shipped: Models, prompts: list[list[int]]) -> None:
    """Over many steps, more nodes let the target agree further."""
    means = []
    for mode in (linear(8), tree(7, 8), tree(16, 8), tree(32, 8)):
        accepted = run(shipped, mode, requests(prompts, GREEDY)).accepted().values()
        means.append(sum(map(sum, accepted)) / sum(map(len, accepted)))
    assert means == sorted(means)
