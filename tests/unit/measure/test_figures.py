"""The figures of a run: what counts, where it counts, and what is unknown."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.measure import figures as measured
from specctl.measure.figures import figures, tokens_in, window_of
from specctl.measure.load import Client, GpuReading, Level, Open, Run, Timing, Window
from tests.examples import examples
from tests.unit.measure.loads import answer, counted, most_in_flight, run


def one_slot(**over: Any) -> Run:
    """Return one slot: a warm-up and three answers of ten tokens, a second each."""
    timings = [answer(0.0, 1.0, warmup=True), *(answer(at, at + 1.0, number=int(at)) for at in (1.0, 2.0, 3.0))]
    return run(timings, **over)


def test_one_slot_in_figures() -> None:
    """Ten tokens a second in one slot are 10 tokens a second, 0.1 s a token, and a first token after 0.1 s."""
    found = figures(one_slot())
    assert (found.window_s, found.requests, found.output_tokens, found.failed) == (3.0, 3, 30, 0)
    assert found.tokens_s == pytest.approx(10.0)
    assert found.request_tokens_s == pytest.approx(10.0)
    assert found.ttft is not None
    assert found.ttft.p50 == pytest.approx(0.1)
    assert found.itl is not None
    assert (found.itl.p50, found.itl.p99) == pytest.approx((0.1, 0.1))
    assert found.in_flight == pytest.approx(1.0)
    assert found.accept_length is None
    assert found.verify_steps_s is None


def test_chunks_of_several_tokens_are_not_tokens() -> None:
    """With three tokens a chunk a gap is three times as long, a token takes as long as ever, and no token is lost."""
    timings = [
        answer(0.0, 1.0, tokens=13, warmup=True),
        *(answer(at, at + 1.0, tokens=13, chunk=3) for at in (1.0, 2.0)),
    ]
    found = figures(run(timings, tokens=13))
    assert found.output_tokens == 26
    assert found.gap is not None
    assert found.itl is not None
    assert found.gap.p50 == pytest.approx(0.2)
    assert found.itl.p50 == pytest.approx(0.2 / 3)
    assert found.tpot_s == pytest.approx(0.8 / 12)


def test_accept_length_leaves_the_prefill_token_out() -> None:
    """Ten tokens, the first of them the prefill's, in three steps are an accept length of 3, and steps are of the same requests."""
    timings = [answer(0.0, 1.0, warmup=True, verify_steps=99)]
    timings += [answer(at, at + 1.0, verify_steps=3) for at in (1.0, 2.0)]
    found = figures(run(timings))
    assert found.accept_length == pytest.approx(3.0)
    assert found.verify_steps_s == pytest.approx(3 / 0.9)


def test_accept_length_is_unknown_where_one_does_not_tell() -> None:
    """A part of a sum is no sum: one answer without verify steps makes both figures unknown."""
    timings = [answer(0.0, 1.0, warmup=True), answer(1.0, 2.0, verify_steps=3), answer(2.0, 3.0)]
    found = figures(run(timings))
    assert (found.accept_length, found.verify_steps_s) == (None, None)


def test_window_opens_when_the_last_slot_is_warm_and_closes_with_the_first() -> None:
    """All slots are busy all through the window: from the latest warm-up's end to the earliest last end."""
    timings = [
        answer(0.0, 0.5, slot=0, warmup=True),
        answer(0.0, 1.0, slot=1, warmup=True),
        answer(0.5, 1.5, slot=0),
        answer(1.0, 2.0, slot=1),
        answer(1.5, 2.5, slot=0),
        answer(2.0, 3.0, slot=1),
    ]
    made = run(timings, concurrency=2)
    assert window_of(made) == Window(opened_s=1.0, closed_s=2.5)
    assert figures(made).in_flight == pytest.approx(2.0)
    assert figures(made).requests == 2


def test_without_all_slots_there_is_no_window() -> None:
    """A loop that never had all its requests in flight has no steady stretch, and no throughput."""
    made = run([answer(0.0, 1.0), answer(1.0, 2.0)], concurrency=2)
    assert window_of(made) is None
    assert figures(made).tokens_s is None


def test_warm_ups_that_failed_warm_nothing() -> None:
    """A slot whose warm-up failed is warm with its first whole answer; one that never had any has no window."""
    cold = replace(answer(0.0, 0.1, warmup=True), failure="refused", output_tokens=None)
    assert window_of(run([cold, answer(1.0, 2.0), answer(2.0, 3.0)])) == Window(opened_s=2.0, closed_s=3.0)
    broken = [replace(answer(at, at + 0.1), failure="refused", output_tokens=None) for at in (1.0, 2.0)]
    assert window_of(run([cold, *broken])) is None


def test_a_failed_request_is_counted_as_failed_and_nothing_else() -> None:
    """A failure is a failure; its tokens that came inside the window are tokens, but its times are nobody's."""
    broken = replace(answer(2.0, 2.5), failure="half an answer", output_tokens=None)
    found = figures(run([answer(0.0, 1.0, warmup=True), answer(1.0, 2.0), broken, answer(2.5, 3.5)]))
    assert (found.failed, found.requests, found.output_tokens) == (1, 2, 30)


STREAMS = st.lists(st.tuples(st.floats(0, 10), st.integers(0, 5)), min_size=1, max_size=30)


def stream(rows: list[tuple[float, int]]) -> Timing:
    """Return an answer with chunks at these moments, each with some tokens."""
    at_s = sorted(at for at, _ in rows)
    counts, total = [], 0
    for _, new in rows:
        total += new
        counts.append(total)
    return Timing(
        number=0,
        prompt="p",
        asked_tokens=total,
        sent_s=0.0,
        ended_s=10.0,
        at_s=at_s,
        counts=counts,
        output_tokens=total,
    )


@given(rows=STREAMS, cuts=st.lists(st.floats(-1, 11), min_size=1, max_size=5))
@settings(max_examples=examples(200))
def test_windows_side_by_side_count_each_token_once(rows: list[tuple[float, int]], cuts: list[float]) -> None:
    """No token is counted in two windows, none outside is counted, and none is lost: counts come from usage alone."""
    places = [-1.0, *sorted(cuts), 11.0]
    windows = [Window(opened_s=low, closed_s=high) for low, high in itertools.pairwise(places)]
    told = stream(rows)
    assert sum(tokens_in(told, window) for window in windows) == told.output_tokens


@given(rows=STREAMS, opened=st.floats(0, 10), span=st.floats(0.01, 5))
@settings(max_examples=examples(200))
def test_gaps_lie_inside_the_window(rows: list[tuple[float, int]], opened: float, span: float) -> None:
    """Gaps of a window add up to no more than the window, and bring no more tokens than it holds."""
    window = Window(opened_s=opened, closed_s=opened + span)
    found = list(measured.gaps(stream(rows), window))
    assert sum(gap for gap, _ in found) <= span + 1e-9
    assert sum(new for _, new in found) <= tokens_in(stream(rows), window)


@given(
    spans=st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 3)), min_size=1, max_size=20),
)
@settings(max_examples=examples(100))
def test_mean_in_flight_is_no_more_than_the_most(spans: list[tuple[float, float]]) -> None:
    """The mean number in flight lies between zero and the largest number at once."""
    timings = [answer(sent, sent + took) for sent, took in spans]
    window = Window(opened_s=1.0, closed_s=9.0)
    assert 0 <= measured.in_flight(timings, window) <= most_in_flight(timings) + 1e-9


def test_other_requests_are_told_by_the_engines_counters() -> None:
    """What the engine finished beyond ours is other people's; exactly ours is none."""
    ours = one_slot(before=counted(10.0, 100.0), after=counted(14.0, 140.0))
    theirs = one_slot(before=counted(10.0, 100.0), after=counted(16.0, 200.0))
    first = one_slot(before=counted(None, None), after=counted(4.0, 40.0))
    assert (figures(ours).foreign_requests, figures(ours).foreign_tokens) == (0.0, 0.0)
    assert (figures(theirs).foreign_requests, figures(theirs).foreign_tokens) == (2.0, 60.0)
    assert figures(first).foreign_requests == 0.0


@pytest.mark.parametrize(
    "made",
    [
        one_slot(),
        one_slot(before=counted(1.0, 1.0), after=counted(5.0, 41.0, seed=2)),
        run(
            [answer(0.0, 1.0, warmup=True), replace(answer(1.0, 2.0), unfinished=True)],
            before=counted(0.0, 0.0),
            after=counted(2.0, 20.0),
        ),
    ],
)
def test_other_requests_are_unknown_where_counters_do_not_tell(made: Run) -> None:
    """No counters, an engine that started anew, an answer that was cut: unknown, not none."""
    assert figures(made).foreign_requests is None


def test_open_loop_waits_count_from_when_a_request_was_due() -> None:
    """A request that we sent late has waited since it was due; the window goes from the first counted arrival to the last."""
    level = Level(pace=Open(requests_s=1.0), tokens=10)
    timings = [
        replace(answer(0.2, 1.2, warmup=True), due_s=0.2),
        replace(answer(1.5, 2.5), due_s=1.0),
        replace(answer(3.0, 4.0), due_s=3.0),
    ]
    made = Run(level=level, timings=timings, client=Client(cpu_s=0, wall_s=1, late_s=0.5))
    found = figures(made)
    assert found.window_s == pytest.approx(1.5)
    assert found.latency is not None
    assert (found.latency.p50, found.late_s) == pytest.approx((1.25, 0.5))


def test_gpus_of_the_window_alone_are_told() -> None:
    """Readings of the warm-up do not count; power adds up over GPUs, the lowest clock and every reason are told."""
    readings = [
        GpuReading(at_s=0.5, index=0, power_w=900.0, sm_clock_hz=1e9, throttle=("hw_thermal",)),
        *(
            GpuReading(at_s=2.0, index=index, power_w=200.0, sm_clock_hz=2e9 - index * 1e8, throttle=())
            for index in (0, 1)
        ),
        *(
            GpuReading(at_s=3.0, index=index, power_w=300.0, sm_clock_hz=2e9, throttle=("sw_power_cap",))
            for index in (0, 1)
        ),
    ]
    found = figures(one_slot(gpus=tuple(readings))).gpus
    assert found is not None
    assert (found.count, found.power_w, found.sm_clock_least_hz) == (2, 500.0, 1.9e9)
    assert found.throttle == ("sw_power_cap",)
    assert found.temperature_c is None


def test_power_of_a_part_of_the_gpus_is_no_power() -> None:
    """A GPU that does not tell its power makes the sum unknown."""
    readings = (GpuReading(at_s=2.0, index=0, power_w=200.0), GpuReading(at_s=2.0, index=1))
    found = figures(one_slot(gpus=readings)).gpus
    assert found is not None
    assert found.power_w is None


def test_cache_is_told() -> None:
    """The part of the prompts that came from the engine's cache is told; what an engine does not say is unknown."""
    warm = answer(0.0, 1.0, warmup=True)
    cached = [replace(answer(at, at + 1.0), cached_tokens=15) for at in (1.0, 2.0)]
    assert figures(run([warm, *cached])).cached_ratio == pytest.approx(0.75)
    assert figures(run([warm, replace(answer(1.0, 2.0), cached_tokens=None)])).cached_ratio is None


def test_a_burst_has_no_decoding_time() -> None:
    """An answer whose chunks were gathered on the way tells no speed and no steps a second; its tokens and steps count."""
    timings = [answer(0.0, 1.0, warmup=True, verify_steps=3)]
    timings += [answer(at, at + 1.0, verify_steps=3) for at in (1.0, 2.0)]
    late = replace(timings[2], at_s=tuple(2.9 + 1e-5 * place for place in range(10)), verify_steps=6)
    found = figures(run([*timings[:2], late]))
    assert (found.requests, found.bursts) == (2, 1)
    assert found.accept_length == pytest.approx(18 / 9)
    assert found.verify_steps_s == pytest.approx(3 / 0.9)
    assert found.request_tokens_s == pytest.approx(10.0)


def test_where_all_came_in_bursts_no_speed_of_a_request_is_known() -> None:
    """Whole answers that come at once have a throughput, and nothing is made up for one request."""
    timings = [answer(0.0, 1.0, warmup=True, verify_steps=3)]
    timings += [
        replace(answer(at, at + 1.0, verify_steps=3), at_s=tuple(at + 1 - 1e-5 * place for place in range(9, -1, -1)))
        for at in (1.0, 2.0)
    ]
    found = figures(run(timings))
    assert found.bursts == found.requests == 2
    assert found.tokens_s == pytest.approx(10.0)
    assert (found.request_tokens_s, found.verify_steps_s, found.tpot_s) == (None, None, None)


def test_a_few_chunks_close_together_are_no_burst() -> None:
    """A reader that was late once has its chunks close together there, and the answer's time is as long as it decoded."""
    one = answer(1.0, 2.0, verify_steps=3)
    held = replace(one, at_s=(*one.at_s[:4], one.at_s[5] - 1e-5, *one.at_s[5:]))
    found = figures(run([answer(0.0, 1.0, warmup=True), held]))
    assert found.bursts == 0
    assert found.verify_steps_s == pytest.approx(3 / 0.9)
