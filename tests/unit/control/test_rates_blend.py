"""The agent's throughput model: the order of trust, and how doubt grows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import mode, parse
from specctl.control.profile_rates import Observation
from specctl.control.rates import Source
from specctl.control.rates_blend import Blend, drift
from specctl.control.rates_table import Table

CHAIN, TREE, PLAIN = mode("dflash"), parse("ddtree:tree_budget=16"), mode("none")
TABLE = Table(points={CHAIN: ((2.0, 100.0), (4.0, 160.0), (8.0, 200.0))}, max_running=64)
SEEN = Observation(
    mode=CHAIN, concurrency=4.0, tokens_s=150.0, accept_length=3.0, weight=100.0, variance=None, age_s=0.0
)


def test_a_measurement_is_trusted_before_a_file_and_a_file_before_a_prior() -> None:
    """Each source is asked only where a better one says nothing."""
    prior = replace(TABLE, points={PLAIN: ((1.0, 9.0), (8.0, 9.0)), CHAIN: ((1.0, 1.0),)}, source=Source.PRIOR)
    blend = Blend(observations=(SEEN,), calibration=TABLE, prior=prior, running=CHAIN)
    found = [blend.tokens_s(one, at) for one, at in ((CHAIN, 4.0), (CHAIN, 8.0), (PLAIN, 2.0), (TREE, 2.0))]
    assert [None if one is None else one.source for one in found] == [
        Source.MEASURED,
        Source.CALIBRATED,
        Source.PRIOR,
        None,
    ]
    assert found[0] is not None
    assert found[0].value == 150.0


def test_a_measurement_does_not_speak_for_far_concurrencies() -> None:
    """Four requests say nothing of six, nor of two; two measurements near each other say what is between."""
    alone = Blend(observations=(SEEN,), running=CHAIN)
    assert [alone.tokens_s(CHAIN, at) is None for at in (2.0, 3.3, 4.9, 6.0)] == [True, False, False, True]
    pair = Blend(observations=(SEEN, replace(SEEN, concurrency=8.0, tokens_s=190.0)), running=CHAIN)
    between = pair.tokens_s(CHAIN, 6.0)
    assert between is not None
    assert between.value == pytest.approx(170.0)


def test_too_little_decoding_measures_nothing() -> None:
    """A few seconds of decoding are no measurement."""
    assert Blend(observations=(replace(SEEN, weight=5.0),), running=CHAIN).tokens_s(CHAIN, 4.0) is None


def test_doubt_grows_with_age() -> None:
    """What was measured a month ago is less certain than what was measured now; its value stays."""
    widths = []
    for age_s in (0.0, 86_400.0, 30 * 86_400.0):
        found = Blend(observations=(replace(SEEN, age_s=age_s),), running=CHAIN).tokens_s(CHAIN, 4.0)
        assert found is not None
        assert found.value == 150.0
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert widths[2] > 3 * widths[0]


def test_doubt_grows_with_noise() -> None:
    """Samples that scatter are worth less than samples that agree."""
    calm = Blend(observations=(replace(SEEN, variance=1.0),), running=CHAIN).tokens_s(CHAIN, 4.0)
    wild = Blend(observations=(replace(SEEN, variance=1e5),), running=CHAIN).tokens_s(CHAIN, 4.0)
    assert calm is not None
    assert wild is not None
    assert wild.low < calm.low


def test_drift_of_the_task_mix_makes_an_algo_that_does_not_run_doubtful() -> None:
    """The chain's accept length fell from 4 to 3 since the tree last ran: the tree's figures are in doubt, the chain's are not."""
    tree = replace(SEEN, mode=TREE, age_s=5000.0)
    cells = (
        replace(SEEN, accept_length=4.0, age_s=9000.0, concurrency=16.0),
        replace(SEEN, accept_length=3.0, age_s=10.0),
        tree,
    )
    assert drift(cells, CHAIN, 5000.0) == pytest.approx(0.2877, abs=1e-3)
    still = Blend(observations=(replace(SEEN, accept_length=3.0), tree), running=CHAIN).tokens_s(TREE, 4.0)
    moved = Blend(observations=cells, running=CHAIN).tokens_s(TREE, 4.0)
    assert still is not None
    assert moved is not None
    assert moved.low < 0.8 * still.low


def test_a_blend_names_the_modes_that_it_knows() -> None:
    """Measured modes first, then those of the file, each once."""
    assert Blend(observations=(replace(SEEN, mode=TREE), SEEN), calibration=TABLE).modes == (TREE, CHAIN)
