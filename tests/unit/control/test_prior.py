"""The prior: published figures where there are some, None everywhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import Mode, mode, parse
from specctl.control.prior import Key, Prior, prior
from specctl.control.rates import Source

DENSE = Key(gpu="NVIDIA B200", moe=False, parameters_b=8.2)
CHAIN, PLAIN, TREE = parse("dflash:block_size=16"), mode("none"), parse("ddtree:block_size=16,tree_budget=63")


def known(key: Key = DENSE) -> Prior:
    """Return the prior of a key that has one."""
    found = prior(key)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "concurrency", "published"),
    [(PLAIN, 1.0, (229, 230)), (PLAIN, 32.0, (5462, 5694)), (CHAIN, 1.0, (955, 1175)), (CHAIN, 32.0, (13116, 16076))],
)
def test_the_published_figures_lie_within_the_bounds(
    one: Mode, concurrency: float, published: tuple[float, float]
) -> None:
    """What Table 3 of the DFlash paper reports for Qwen3-8B on a B200 is inside what the prior gives."""
    found = known().tokens_s(one, concurrency)
    assert found is not None
    assert found.source is Source.PRIOR
    assert found.low <= published[0]
    assert published[1] <= found.high


def test_speculation_gains_less_as_load_grows() -> None:
    """The chain's speed-up falls from five at one request to under three at 32, as published; a dense target's does."""
    gains = []
    for concurrency in (1.0, 8.0, 32.0):
        chain, plain = known().tokens_s(CHAIN, concurrency), known().tokens_s(PLAIN, concurrency)
        assert chain is not None
        assert plain is not None
        gains.append(chain.value / plain.value)
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 4 > 3 > gains[2]


def test_a_tree_leads_at_few_requests_and_is_not_known_at_many() -> None:
    """A tree of 63 nodes packs 512 tokens at eight requests: nothing was published beyond, and nothing is said."""
    tree, chain = known().tokens_s(TREE, 1.0), known().tokens_s(CHAIN, 1.0)
    assert tree is not None
    assert chain is not None
    assert tree.high > chain.value
    assert known().tokens_s(TREE, 9.0) is None


def test_longer_contexts_slow_drafts_and_leave_plain_decoding() -> None:
    """At 8K and 16K a short-context drafter accepts less and a verify step takes longer."""
    rates = []
    for context in (1000.0, 4000.0, 8000.0, 16000.0):
        found = known(replace(DENSE, context_tokens=context))
        chain, plain = found.tokens_s(CHAIN, 8.0), found.tokens_s(PLAIN, 8.0)
        assert chain is not None
        assert plain == known().tokens_s(PLAIN, 8.0)
        rates.append(chain.value)
    assert rates == sorted(rates, reverse=True)
    assert rates[3] < rates[0] / 3


@pytest.mark.parametrize(
    "key",
    [
        replace(DENSE, gpu="NVIDIA H100 80GB HBM3"),
        replace(DENSE, gpu="NVIDIA RTX PRO 6000 Blackwell"),
        replace(DENSE, tensor_parallel=8),
        replace(DENSE, parameters_b=70.0),
        replace(DENSE, moe=True),
        replace(DENSE, context_tokens=40_000.0),
    ],
)
def test_where_nothing_was_published_there_is_no_prior(key: Key) -> None:
    """Another GPU, size, parallelism or context: calibrate first."""
    assert prior(key) is None


@pytest.mark.parametrize(
    ("one", "concurrency"),
    [
        (PLAIN, 33.0),
        (PLAIN, 0.5),
        (parse("dflash:block_size=32"), 4.0),
        (parse("ddtree:block_size=16"), 4.0),
        (parse("ddtree:tree_budget=512"), 1.0),
    ],
)
def test_outside_the_published_range_it_says_nothing(one: Mode, concurrency: float) -> None:
    """It never extrapolates: neither load, nor block, nor budget."""
    assert known().tokens_s(one, concurrency) is None


def test_a_smaller_block_is_known_by_its_own_table() -> None:
    """A block of eight accepts less, and packs less."""
    eight, sixteen = known().tokens_s(parse("dflash:block_size=8"), 32.0), known().tokens_s(CHAIN, 32.0)
    assert eight is not None
    assert sixteen is not None
    assert eight.value > sixteen.value
    assert known().modes == ()
