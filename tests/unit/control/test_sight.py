"""The value that views show: what is old says so, what is not known stays unknown, and time makes everything older alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.sight import Source, Told, knobs_of, mode_of
from tests import sights

AGES = st.none() | st.floats(min_value=0.0, max_value=1e6)


@given(AGES, st.floats(min_value=0.0, max_value=1e6))
def test_a_figure_never_grows_younger(age_s: float | None, by_s: float) -> None:
    """Later, a figure is as old or older; once stale it stays so, and an unknown age is never taken for a young one."""
    told = Told(value=3, age_s=age_s, source=Source.ENGINE)
    later = told.later(by_s)
    assert (later.value, later.source) == (told.value, told.source)
    assert later.stale or not told.stale
    assert (later.age_s is None) == (age_s is None)
    assert age_s is None or (later.age_s is not None and later.age_s >= age_s)
    assert age_s is not None or told.stale


def test_everything_of_a_sight_grows_older() -> None:
    """Every age of a sight grows by the same, what is left of a time shrinks, and what is unknown stays so."""
    later = sights.FULL.later(7.0)
    told = (later.running, later.waiting, later.tokens_per_s, later.accept_length, later.kv_ratio)
    assert [figure and figure.age_s for figure in told] == [7.4] * 5
    assert {gpu.age_s for gpu in later.gpus or ()} == {7.3}
    assert (later.age_s, later.last and later.last.age_s) == (7.0, 14_538.0)
    assert later.loading is not None
    assert (later.loading.elapsed_s, later.loading.eta_s) == (299.0, 179.0)
    assert later.agent is not None
    assert (later.agent.pin_left_s, later.agent.decision and later.agent.decision.for_s) == (3.0, 67.0)
    assert (later.guard and later.guard.hard_left_s) == 54.0
    assert sights.BARE.later(7.0) == sights.BARE


def test_no_time_changes_nothing() -> None:
    """A sight of now is the very same value."""
    assert sights.FULL.later(0.0) is sights.FULL


def test_the_age_of_counts() -> None:
    """The age of running and waiting is that of the older one, and not known where one of them has none."""
    both = replace(sights.BARE, running=sights.whole(1, 2.0), waiting=sights.whole(0, 3.0))
    assert both.figures_age_s == 3.0
    assert replace(both, waiting=sights.whole(0, None)).figures_age_s is None
    assert sights.BARE.figures_age_s is None


@pytest.mark.parametrize(
    ("algo", "knobs", "order"),
    [
        ("ddtree", {"topk_cap": 1, "tree_budget": 7}, ["tree_budget", "topk_cap"]),
        ("from-tomorrow", {"b": 2, "a": 1}, ["a", "b"]),
    ],
)
def test_knobs_in_their_algos_order(algo: str, knobs: dict[str, int], order: list[str]) -> None:
    """Knobs are shown in the order in which the algo has them; those of an algo that is not known, by name."""
    found = knobs_of(mode_of(algo, knobs))
    assert (list(found), dict(found)) == (order, knobs)
