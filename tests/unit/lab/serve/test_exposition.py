"""Prometheus text that reads back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.lab.serve import exposition
from specctl.lab.serve.exposition import Family
from specctl.lab.serve.histogram import Histogram


def page(value: exposition.Value, **labels: str) -> list[str]:
    """Return the lines of one gauge."""
    return exposition.text([Family(name="m", kind="gauge", meaning="M.", samples=((labels, value),))]).splitlines()


def test_a_gauge() -> None:
    """A family has its help, its type and its sample with labels in order."""
    assert page(3, b="2", a="1") == ["# HELP m M.", "# TYPE m gauge", 'm{a="1",b="2"} 3.0']


def test_labels_are_escaped() -> None:
    """Quotes, backslashes and newlines in a label are escaped."""
    assert page(1, a='x"\\\n')[-1] == 'm{a="x\\"\\\\\\n"} 1.0'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (999999, "999999.0"),
        (1e6, "1e+06"),
        (1.1e6, "1.1e+06"),
        (12345678, "1.2345678e+07"),
        (float("nan"), "NaN"),
        (0.1, "0.1"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    """Numbers look as Prometheus' own clients write them."""
    assert page(value)[-1] == f"m {text}"


@given(st.floats(min_value=0, max_value=1e15, allow_nan=False))
def test_numbers_read_back(value: float) -> None:
    """Every number reads back as it was."""
    assert float(page(value)[-1].split(" ")[1]) == value


def test_a_histogram() -> None:
    """A histogram has its sum, its buckets up to infinity and its count."""
    histogram = Histogram((0.5,))
    histogram.observe(0.25)
    assert page(histogram.read(), a="1")[2:] == [
        'm_sum{a="1"} 0.25',
        'm_bucket{a="1",le="0.5"} 1.0',
        'm_bucket{a="1",le="+Inf"} 1.0',
        'm_count{a="1"} 1.0',
    ]
