"""How busy a trace makes a server, and traces made as busy as is wished."""

from __future__ import annotations

import pytest

from specctl.control.replay import sizing
from specctl.control.replay.arrivals import Lengths, Windows
from specctl.control.replay.formats import Trace
from specctl.control.replay.load import Series
from specctl.control.replay.sizing import Size
from tests.unit.control.replay.loads import NONE, SERVICE, flat, requests

WINDOWS = Windows(starts_s=(0.0, 600.0), rates=(2.0, 8.0), last_s=600.0)
STEADY = requests(*((number / 4, 100, 60) for number in range(2000)))


def test_the_peak_is_the_busiest_minutes_work() -> None:
    """A minute with 24 tokens of answer and a second of reading, at 10 tokens a second: 3.4 of 60 seconds."""
    load = requests((0.0, 0, 10), (70.0, 100, 20), (119.0, 0, 4), (300.0, 0, 1))
    assert sizing.peak_load(flat(10.0, prefill_s=0.01), load) == pytest.approx(3.4 / 60)


@pytest.mark.parametrize("trace", [STEADY, WINDOWS])
@pytest.mark.parametrize("peak", [0.3, 0.9, 1.2])
def test_a_trace_is_made_as_busy_as_wished(trace: Trace, peak: float) -> None:
    """The busiest minute comes to within a tenth of what was asked for, for requests and for rates."""
    found = sizing.by_peak(trace, peak, SERVICE, Lengths(prompt=50.0, answer=40.0), seed=1)
    assert sizing.peak_load(SERVICE, found) == pytest.approx(peak, rel=0.1)


def test_a_series_has_no_arrivals_to_scale_to_a_peak() -> None:
    """A concurrency says nothing of arrivals; it can be multiplied, and levels stay whole."""
    series = Series(step_s=1.0, levels=[1, 2, 3])
    with pytest.raises(ValueError, match="no arrivals"):
        sizing.by_peak(series, 0.5, SERVICE, Lengths(), 0)
    assert sizing.by_scale(series, 1.7, Lengths(), 0) == Series(step_s=1.0, levels=[2, 3, 5])


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("trace", [STEADY, WINDOWS, Series(step_s=1.0, levels=[1])])
def test_a_scale_is_above_zero(trace: Trace, ratio: float) -> None:
    """Whatever the trace, it is not scaled by nothing or by no number."""
    with pytest.raises(ValueError, match="above zero"):
        sizing.by_scale(trace, ratio, Lengths(), 0)


@pytest.mark.parametrize("trace", [STEADY, WINDOWS])
def test_too_many_requests_are_refused_before_they_are_made(trace: Trace) -> None:
    """A ratio that makes millions of requests ends with a number, not with a full memory."""
    with pytest.raises(ValueError, match="are more than 3000000"):
        sizing.by_scale(trace, 1e6, Lengths(), 0)


def test_rates_of_nothing_have_no_peak() -> None:
    """Windows without a request cannot be made busy."""
    with pytest.raises(ValueError, match="no request arrives"):
        sizing.by_peak(WINDOWS.scaled(0.0), 0.5, SERVICE, Lengths(), 0)


def test_a_load_is_measured() -> None:
    """Requests have a count and a peak; a series has neither."""
    load = requests((0.0, 0, 280), span_s=60.0)
    assert sizing.size("a.csv", load, SERVICE) == Size(name="a.csv", span_s=60.0, requests=1, peak=1 / 60)
    assert sizing.size("b.csv", Series(step_s=1.0, levels=[1, 2]), SERVICE) == Size(name="b.csv", span_s=2.0)
    assert SERVICE.best_capacity == SERVICE.capacity(NONE)
