"""Picking tokens: the distribution is the one asked for, and randomness belongs to seed and position alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.lab.sampling import Chooser, distribution, sample, uniform
from specctl.lab.types import Sampling

SCORES = np.log(np.array([[0.4, 0.3, 0.2, 0.1]]))


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(temperature=1.0), [0.4, 0.3, 0.2, 0.1]),
        (Sampling(temperature=0.5), [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        (Sampling(temperature=1.0, top_k=2), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(temperature=1.0, top_p=0.6), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(temperature=1.0, top_p=0.1), [1, 0, 0, 0]),
        (Sampling(temperature=1.0, top_k=3, top_p=0.45), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(temperature=1.0, top_k=1), [1, 0, 0, 0]),
    ],
)
def test_the_distribution_is_the_one_asked_for(sampling: Sampling, expected: list[float]) -> None:
    """Temperature, then top-k, then top-p, each renormalised."""
    np.testing.assert_allclose(distribution(SCORES, sampling), [expected], atol=1e-12)


def test_samples_follow_the_distribution() -> None:
    """Over 20,000 positions each token's share is within four standard errors of its probability."""
    chooser = Chooser(sampling=Sampling(temperature=1.0), seed=11, ending_tokens=())
    count = 20_000
    picked = chooser.pick(np.repeat(SCORES, count, axis=0).astype(np.float32), np.arange(count))
    shares = np.bincount(picked, minlength=4) / count
    wanted = np.exp(SCORES[0])
    assert (np.abs(shares - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / count)).all()


@given(seed=st.integers(0, 2**63), index=st.integers(0, 5000))
def test_random_numbers_are_in_range_and_repeatable(seed: int, index: int) -> None:
    """A position's number is in [0, 1) and is always the same."""
    assert 0.0 <= uniform(seed, index) == uniform(seed, index) < 1.0


def test_random_numbers_are_evenly_spread_and_uncorrelated() -> None:
    """Numbers of neighbouring positions and seeds fill the unit interval evenly and do not follow each other."""
    table = np.array([[uniform(seed, index) for index in range(200)] for seed in range(50)])
    assert abs(table.mean() - 0.5) < 0.02
    assert np.abs(np.histogram(table, bins=10, range=(0, 1))[0] - 1000).max() < 150
    for shifted in (table[:, 1:] - table[:, :-1], table[1:] - table[:-1]):
        assert abs(shifted.var() - 1 / 6) < 0.01


@given(draw=st.floats(0, 1, exclude_max=True))
def test_a_token_of_probability_zero_is_never_sampled(draw: float) -> None:
    """Whatever the draw, the token sampled has a chance."""
    weights = np.array([[0.0, 0.25, 0.0, 0.75, 0.0]])
    assert int(sample(weights, np.array([draw]))[0]) in {1, 3}


def test_ending_tokens_wait_for_min_new_tokens() -> None:
    """Before min_new_tokens an ending token is never picked; from then on it is."""
    chooser = Chooser(sampling=Sampling(min_new_tokens=2), seed=0, ending_tokens=(1,))
    logits = np.array([[0.0, 5.0, 2.0]] * 3, dtype=np.float32)
    assert chooser.pick(logits, np.array([0, 1, 2])).tolist() == [2, 2, 1]
    assert not chooser.is_plain(1)
    assert chooser.is_plain(2)


def test_only_greedy_requests_take_the_bare_argmax() -> None:
    """A sampled request is never picked for by argmax."""
    greedy = Chooser(sampling=Sampling(), seed=0, ending_tokens=())
    assert greedy.is_plain(0)
    assert not dataclasses.replace(greedy, sampling=Sampling(temperature=0.1)).is_plain(0)
