"""Requests that are drawn for a trace of rates."""

from __future__ import annotations

import itertools
import statistics

import pytest

from specctl.control.replay import arrivals
from specctl.control.replay.arrivals import Lengths, Windows

WINDOWS = Windows(starts_s=(0.0, 100.0, 200.0), rates=(5.0, 0.0, 50.0), last_s=100.0)


def test_numbers_are_those_of_splitmix64() -> None:
    """The first outputs for seed 0 are those that other implementations of SplitMix64 give."""
    found = list(itertools.islice(arrivals.uniform(0), 3))
    told = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert found == pytest.approx([value / 2**64 for value in told], rel=1e-15)


def test_numbers_lie_between_zero_and_one() -> None:
    """Neither end is reached, and they are spread evenly."""
    found = list(itertools.islice(arrivals.uniform(7), 20_000))
    assert 0 < min(found) < 0.001
    assert 0.999 < max(found) < 1
    assert statistics.mean(found) == pytest.approx(0.5, abs=0.01)


def test_the_same_seed_draws_the_same() -> None:
    """A seed is all that it depends on, and another draws other requests."""
    assert arrivals.requests(WINDOWS, Lengths(), 1) == arrivals.requests(WINDOWS, Lengths(), 1)
    assert arrivals.requests(WINDOWS, Lengths(), 1) != arrivals.requests(WINDOWS, Lengths(), 2)


def test_windows_have_their_rates() -> None:
    """Each window gets about as many requests as its rate says, one without a rate none, and lengths have their means."""
    found = arrivals.requests(WINDOWS, Lengths(prompt=300.0, answer=80.0), 3)
    counts = [sum(begin <= at < end for at in found.at_s) for begin, end, _ in WINDOWS.bounds()]
    assert counts[1] == 0
    assert counts[0] == pytest.approx(500, rel=0.2)
    assert counts[2] == pytest.approx(5000, rel=0.06)
    assert statistics.mean(found.inputs) == pytest.approx(300, rel=0.1)
    assert statistics.mean(found.outputs) == pytest.approx(80, rel=0.06)
    assert (found.span_s, WINDOWS.expected) == (300.0, 5500.0)


def test_no_request_at_all_is_refused() -> None:
    """Rates of zero draw nothing, and say so."""
    with pytest.raises(ValueError, match="no request"):
        arrivals.requests(WINDOWS.scaled(0.0), Lengths(), 0)


@pytest.mark.parametrize("lengths", [(0.5, 10.0), (10.0, 0.0), (1e7, 10.0), (float("nan"), 10.0)])
def test_mean_lengths_are_of_this_world(lengths: tuple[float, float]) -> None:
    """A mean is at least a token and at most a million."""
    with pytest.raises(ValueError, match="1 to 1000000"):
        Lengths(prompt=lengths[0], answer=lengths[1])
