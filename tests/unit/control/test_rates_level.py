"""Figures of another day are brought to the level of this host: a common slowness of all modes is never taken for a gain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.mode import Mode, mode, parse
from specctl.control.profile_rates import Observation
from specctl.control.rates_blend import blend
from specctl.control.rates_level import level, levelled
from specctl.control.rates_table import Table

CHAIN, TREE = mode("dflash"), parse("ddtree:tree_budget=16")
POINTS = {CHAIN: ((1.0, 100.0), (4.0, 300.0)), TREE: ((1.0, 120.0), (4.0, 280.0))}
TABLE = Table(points=POINTS, max_running=64)


def seen(tokens_s: float, concurrency: float = 4.0, weight: float = 60.0) -> Observation:
    """Return a measurement of the chain."""
    return Observation(
        mode=CHAIN,
        concurrency=concurrency,
        tokens_s=tokens_s,
        accept_length=3.0,
        weight=weight,
        variance=None,
        age_s=0.0,
    )


@given(st.floats(0.05, 20.0))
def test_a_level_changes_no_order(factor: float) -> None:
    """Whatever all modes lost or won since the calibration, the better one by the file stays the better one, by as much."""
    known = blend((seen(300.0 * factor), seen(100.0 * factor, 1.0)), TABLE, None, CHAIN)
    for concurrency, (chain, tree) in ((1.0, (100.0, 120.0)), (4.0, (300.0, 280.0))):
        found = [known.tokens_s(each, concurrency) for each in (CHAIN, TREE)]
        assert [one.value for one in found if one is not None] == pytest.approx([chain * factor, tree * factor])


def test_the_level_is_a_mean_by_time() -> None:
    """Where the host is below the figures at one load and above at another, seconds of decoding decide."""
    assert level(TABLE, (seen(150.0, weight=90.0), seen(200.0, 1.0, weight=30.0)), CHAIN) == pytest.approx(
        (0.5**90 * 2.0**30) ** (1 / 120)
    )


def test_distance_is_doubt() -> None:
    """The further the host is from the figures, the wider the bounds; at their level nothing is added."""
    widths = []
    for tokens_s in (300.0, 240.0, 60.0):
        rates = levelled(TABLE, (seen(tokens_s),), CHAIN)
        found = None if rates is None else rates.tokens_s(TREE, 4.0)
        assert found is not None
        widths.append((found.high - found.low) / found.value)
    assert widths == sorted(widths)
    plain = TABLE.tokens_s(TREE, 4.0)
    assert plain is not None
    assert widths[0] == pytest.approx((plain.high - plain.low) / plain.value)


@pytest.mark.parametrize(
    ("observations", "running"),
    [((), CHAIN), ((seen(150.0),), TREE), ((seen(150.0),), None), ((seen(150.0, 9.0),), CHAIN)],
)
def test_what_cannot_be_compared_changes_nothing(observations: tuple[Observation, ...], running: Mode | None) -> None:
    """Without a measurement of the running mode where the figures reach, they stay as they are."""
    assert levelled(TABLE, observations, running) is TABLE
    assert levelled(None, observations, CHAIN) is None


def test_a_moment_is_no_level() -> None:
    """Seconds of decoding are too few to move the figures of all modes."""
    found = blend((seen(30.0, weight=5.0),), TABLE, None, CHAIN).tokens_s(TREE, 4.0)
    assert found == TABLE.tokens_s(TREE, 4.0)
