"""Requests and series as values, scaled loads, and the concurrency that arrivals and ends make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.replay import load
from specctl.control.replay.load import Requests, Series
from tests.unit.control.replay.loads import loads, requests


@pytest.mark.parametrize(
    ("rows", "span_s", "words"),
    [
        ([(1.0, 1, 1), (0.5, 1, 1)], 2.0, "not in the order"),
        ([(-1.0, 1, 1)], 2.0, "not in the order"),
        ([(0.0, 1, 1), (3.0, 1, 1)], 2.0, "span ends before"),
        ([(0.0, 1, 0)], 2.0, "at least no prompt and one token"),
        ([(0.0, -1, 1)], 2.0, "at least no prompt and one token"),
    ],
)
def test_requests_that_cannot_be_are_refused(rows: list[tuple[float, int, int]], span_s: float, words: str) -> None:
    """Requests come in order, within the span, with something to generate."""
    with pytest.raises(ValueError, match=words):
        requests(*rows, span_s=span_s)


def test_columns_are_of_one_length() -> None:
    """Columns that differ in length, and empty ones, are refused."""
    with pytest.raises(ValueError, match="differ in length"):
        Requests(at_s=[0.0], inputs=[1, 2], outputs=[1], span_s=1.0)
    with pytest.raises(ValueError, match="no request"):
        Requests(at_s=[], inputs=[], outputs=[], span_s=1.0)


@pytest.mark.parametrize(("step_s", "levels"), [(0.0, [1]), (1.0, []), (1.0, [-1.0])])
def test_series_that_cannot_be_are_refused(step_s: float, levels: list[float]) -> None:
    """A series has steps that last, at least one, and no level below zero."""
    with pytest.raises(ValueError, match=r"no time|no concurrency|below zero"):
        Series(step_s=step_s, levels=levels)


@given(loads(), st.floats(0.05, 5))
def test_a_scaled_load_has_that_many_requests_of_the_same(given_load: Requests, ratio: float) -> None:
    """Scaled by a ratio there are so many requests, rounded down, each one of the trace's, at its time or a moment later."""
    count = int(len(given_load) * ratio)
    if count == 0:
        with pytest.raises(ValueError, match="no request is left"):
            load.scaled(given_load, ratio)
        return
    found = load.scaled(given_load, ratio)
    assert len(found) == count
    originals = set(zip(given_load.inputs, given_load.outputs, strict=True))
    assert set(zip(found.inputs, found.outputs, strict=True)) <= originals
    assert found.span_s >= given_load.span_s


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_a_ratio_is_above_zero(ratio: float) -> None:
    """Scaling by nothing, by less or by no number is refused."""
    with pytest.raises(ValueError, match="above zero"):
        load.scaled(requests((0.0, 1, 1)), ratio)


def test_scaled_by_one_is_the_same() -> None:
    """A ratio of one changes nothing."""
    given_load = requests((0.0, 5, 1), (0.0, 6, 2), (2.5, 7, 3))
    found = load.scaled(given_load, 1.0)
    assert (list(found.at_s), list(found.inputs), list(found.outputs)) == ([0.0, 0.0, 2.5], [5, 6, 7], [1, 2, 3])


def test_concurrency_counts_those_that_are_there() -> None:
    """A level is how many have arrived and not gone when its step begins; who comes or goes at that moment has."""
    found = load.concurrency([0.0, 0.5, 1.0, 3.2], [1.0, 2.5, 3.0, 9.0], step_s=1.0, span_s=5.0)
    assert list(found.levels) == [1, 2, 2, 0, 1]
