"""Histograms count into the right buckets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specctl.lab.serve.histogram import Histogram


def test_an_edge_belongs_to_its_bucket() -> None:
    """A value equal to an edge counts below it; the last bucket holds everything."""
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    read = histogram.read()
    assert read.buckets == ((1.0, 2), (2.0, 3), (float("inf"), 4))
    assert (read.total, read.count) == (12.0, 4)


def test_one_measurement_for_several() -> None:
    """A value observed several times counts several times."""
    histogram = Histogram((1.0,))
    histogram.observe(0.5, 3)
    assert (histogram.read().count, histogram.read().total) == (3, 1.5)


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=50))
def test_counts_never_fall(values: list[float]) -> None:
    """Cumulative counts never decrease and end at the number of values."""
    histogram = Histogram((0.1, 1.0, 10.0))
    for value in values:
        histogram.observe(value)
    counts = [count for _, count in histogram.read().buckets]
    assert counts == sorted(counts)
    assert counts[-1] == len(values)
