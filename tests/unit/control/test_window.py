"""The last minutes as a window: bounded, time-weighted, and silent where nothing is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.mode import mode
from specctl.control.sample.engine import Activity, Counted, DecodeSums, EngineSample
from specctl.control.window import MAX_SAMPLES, Figures, Window, figures, last, observe

CHAIN = mode("dflash", {"block_size": 8})


def sample(
    at_s: float,
    running: int | None,
    *,
    span_s: float | None = 1.0,
    tokens: float | None = None,
    counted: Counted | None = None,
) -> EngineSample:
    """Return a sample; tokens are committed two a step, each step of all running requests taking 10 ms."""
    steps = (tokens or 0.0) / 2 / max(running or 1, 1)
    decoded = DecodeSums(
        steps=steps,
        requests=(tokens or 0) / 2,
        busy_s=steps / 100,
        request_busy_s=steps / 100 * (running or 0),
        tokens=tokens or 0,
    )
    return EngineSample(
        at_s=at_s,
        span_s=span_s,
        activity=Activity.STALE if running is None else Activity.IDLE if running == 0 else Activity.ACTIVE,
        running=running,
        waiting=None if running is None else 0,
        mode=CHAIN,
        decoded=None if tokens is None else decoded,
        counted=counted,
        context_tokens=100.0 * running if running else None,
    )


def window(*samples: EngineSample, horizon_s: float = 300.0) -> Window:
    """Return a window of samples."""
    found = Window(horizon_s=horizon_s)
    for one in samples:
        found = observe(found, one)
    return found


def test_means_are_weighted_by_time() -> None:
    """Three seconds of four requests and one of none are a mean of three, a quarter of it idle."""
    found = figures(window(sample(3.0, 4, span_s=3.0, tokens=1200.0), sample(4.0, 0, tokens=0.0)))
    assert (found.concurrency, found.running, found.highest, found.idle_s) == (3.0, 3.0, 4, 1.0)
    assert (found.tokens_s, found.context_tokens, found.modes) == (None, 400.0, frozenset({CHAIN}))
    assert found.decoded is not None
    assert (found.decoded.accept_length, found.decoded.batch) == pytest.approx((2.0, 4.0))
    assert (found.decoded.tokens_s, found.decoded.request_tokens_s) == pytest.approx((800.0, 200.0))


def test_unknown_time_is_told_and_not_counted() -> None:
    """A minute without an answer is in no mean; it is the difference of span and known time."""
    found = figures(window(sample(1.0, 2, tokens=200.0), sample(61.0, None, span_s=60.0)))
    assert (found.span_s, found.known_s, found.concurrency) == (61.0, 1.0, 2.0)


def test_tokens_a_second_are_those_between_pages() -> None:
    """Tokens a second are of the counter that grows with every token, over the time of its pages, and not of decode steps."""
    pages = (Counted(span_s=10.0, decode_tokens=900.0), Counted(span_s=20.0, decode_tokens=0.0), Counted(span_s=5.0))
    parts = [sample(float(at), 1, tokens=10.0, counted=page) for at, page in enumerate(pages)]
    assert figures(window(*parts)).tokens_s == 30.0


def test_nothing_known_is_none() -> None:
    """An empty window and one of stale samples have no figure at all."""
    assert figures(Window()) == Figures()
    assert figures(window(sample(1.0, None))) == Figures(span_s=1.0)


def test_what_is_older_than_the_horizon_is_gone() -> None:
    """A window keeps samples of its horizon; its last part is the same as a shorter window."""
    long = window(*(sample(float(at), at) for at in range(20)), horizon_s=10.0)
    assert [one.at_s for one in long.samples] == [float(at) for at in range(10, 20)]
    assert last(long, 3.0).samples == window(*(sample(float(at), at) for at in range(20)), horizon_s=3.0).samples


def test_a_clock_that_went_back_takes_the_future_away() -> None:
    """Samples that claim to be from after the newest are dropped."""
    assert [one.at_s for one in window(sample(5.0, 1), sample(9.0, 1), sample(6.0, 1)).samples] == [5.0, 6.0]


def test_a_window_is_bounded_whatever_the_ticks() -> None:
    """Ticks closer than any loop makes them fill no memory."""
    found = window(*(sample(at * 1e-6, 1) for at in range(MAX_SAMPLES + 50)))
    assert len(found.samples) == MAX_SAMPLES


@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.none() | st.integers(0, 100), st.none() | st.floats(0, 1e6)), max_size=20)
)
def test_time_adds_up(parts: list[tuple[float, int | None, float | None]]) -> None:
    """Known time is that of samples with a concurrency, and a mean lies between the least and the most."""
    at_s, made = 0.0, []
    for span, running, tokens in parts:
        at_s += span
        made.append(sample(at_s, running, span_s=span, tokens=tokens))
    found = figures(window(*made))
    known = [(span, running) for span, running, _ in parts if running is not None]
    assert found.span_s == pytest.approx(sum(span for span, _, _ in parts))
    assert found.known_s == pytest.approx(sum(span for span, _ in known))
    assert (found.concurrency is None) == (not known)
    if found.concurrency is not None:
        counts = [running for _, running in known]
        assert min(counts) - 1e-9 <= found.concurrency <= max(counts) + 1e-9
