"""The fold of looks into samples: idle is shown, stale is said, time adds up, and a change of mode is nobody's figure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.mode import Mode, mode
from specctl.control.sample.engine import (
    Activity,
    Counted,
    DecodeSums,
    EngineCounters,
    EngineLoad,
    EngineSample,
    Look,
    Page,
)
from specctl.control.sample.engine_track import EngineTrack, advance

NONE = mode("none")
CHAIN = mode("dflash", {"block_size": 8})


def sums(tokens: float, *, requests: float | None = None, busy_s: float | None = None) -> DecodeSums:
    """Return sums of one stream that commits two tokens a step of 10 ms."""
    steps = tokens / 2 if requests is None else requests
    seconds = steps / 100 if busy_s is None else busy_s
    return DecodeSums(steps=steps, requests=steps, busy_s=seconds, request_busy_s=seconds, tokens=tokens)


def look(
    at_s: float, running: int | None = 0, waiting: int | None = 0, *, tokens: float | None = 100.0, **said: float
) -> Look:
    """Return a fresh look at a ready engine."""
    load = EngineLoad(
        running=running,
        waiting=waiting,
        max_running=8,
        age_s=said.get("age_s", 0.02),
        decoded=None if tokens is None else sums(tokens),
        ranks=1,
    )
    return Look(at_s=at_s, load=load, ready=True)


def fold(*ticks: tuple[float, Look | None], mode: Mode | None = CHAIN) -> list[EngineSample]:
    """Return the samples of ticks."""
    track, found = EngineTrack(), []
    for at_s, seen in ticks:
        track, sample = advance(track, at_s=at_s, look=seen, mode=mode)
        found.append(sample)
    return found


def test_idle_must_be_shown() -> None:
    """One empty look shows no idleness; the second, with no token in between, does."""
    assert [one.activity for one in fold((1.0, look(1.0)), (2.0, look(2.0)))] == [Activity.ACTIVE, Activity.IDLE]


@pytest.mark.parametrize(
    "second",
    [
        look(2.0, running=1),
        look(2.0, waiting=1),
        look(2.0, tokens=102.0),
        look(2.0, age_s=2.5),
        look(2.0, tokens=None),
        look(2.0, tokens=10.0),
    ],
    ids=["running", "waiting", "tokens", "old", "no-sums", "restarted"],
)
def test_what_is_not_shown_is_not_idle(second: Look) -> None:
    """A request, a token, an old publication, unknown or fallen counters: none of them is idle."""
    assert fold((1.0, look(1.0)), (2.0, second))[1].activity is Activity.ACTIVE


def test_an_old_look_is_stale() -> None:
    """A look that no other follows is neither idle nor a concurrency of zero for long."""
    seen = look(2.0)
    found = fold((1.0, look(1.0)), (2.0, seen), (3.0, seen), (6.0, seen), (8.0, seen))
    assert [one.activity for one in found[1:]] == [Activity.IDLE, Activity.IDLE, Activity.ACTIVE, Activity.STALE]
    assert [one.concurrency for one in found[1:]] == [0, 0, 0, None]


def test_no_look_is_stale() -> None:
    """Without an answer nothing is known but that time passes."""
    assert fold((1.0, None), (2.0, None))[1] == EngineSample(at_s=2.0, span_s=1.0, activity=Activity.STALE)


@pytest.mark.parametrize(("running", "waiting"), [(None, 0), (0, None)])
def test_half_a_load_is_none(running: int | None, waiting: int | None) -> None:
    """A load without running or without waiting requests has no concurrency."""
    found = fold((1.0, look(1.0)), (2.0, look(2.0, running, waiting)))[1]
    assert (found.activity, found.concurrency) == (Activity.STALE, None)


def test_the_same_look_gains_nothing_twice() -> None:
    """A tick that finds the look of the tick before has no gain; the gain is that between looks."""
    one, two = look(1.0, running=1), look(2.0, running=1, tokens=160.0)
    found = fold((1.0, one), (1.5, one), (2.0, two), (2.5, two))
    assert [sample.decoded for sample in found] == [None, None, sums(160.0).since(sums(100.0)), None]


def test_steps_have_the_context_of_the_requests_that_took_them() -> None:
    """What was decoded before the last request ended had that request's context; an idle look has none."""
    busy = look(1.0, running=2)
    busy = replace(busy, load=replace(busy.load, used_tokens=900))
    found = fold((1.0, busy), (2.0, look(2.0, tokens=180.0)), (3.0, look(3.0, tokens=180.0)))
    assert [one.context_tokens for one in found] == [450.0, 450.0, None]


def test_a_long_gap_is_unknown_time() -> None:
    """Of a minute in which the agent did not run, only its length is known."""
    found = fold((1.0, look(1.0, running=3)), (61.0, look(61.0, running=3)))[1]
    assert (found.span_s, found.concurrency) == (60.0, None)


def test_a_change_of_mode_is_nobodys_figure() -> None:
    """What was decoded around a change belongs to neither mode; the first gain that began after it is the new one's."""
    track, modes = EngineTrack(), []
    for second in range(8):
        running = CHAIN if second < 4 else NONE
        seen = look(float(second), running=1, tokens=100.0 * (second + 1))
        track, sample = advance(track, at_s=second + 0.1, look=seen, mode=running)
        modes.append(sample.mode)
    assert modes == [None, None, CHAIN, CHAIN, None, None, NONE, NONE]


def test_a_mode_that_is_being_changed_is_none() -> None:
    """While the caller says that the mode is unknown, no sample has one."""
    assert {one.mode for one in fold(*((float(at), look(float(at))) for at in range(4)), mode=None)} == {None}


def page(at_s: float, tokens: float) -> Page:
    """Return a page of an engine that generates without speculation."""
    return Page(
        at_s=at_s, counters=EngineCounters(decode_tokens=tokens, generated_tokens=tokens, requests=tokens / 100)
    )


def paged(*ticks: tuple[Look, Page]) -> list[EngineSample]:
    """Return the samples of looks with pages."""
    track, found = EngineTrack(), []
    for seen, with_page in ticks:
        track, sample = advance(track, at_s=seen.at_s, look=seen, page=with_page, mode=NONE)
        found.append(sample)
    return found


def test_counters_are_all_there_is_without_sums() -> None:
    """An engine without sums: tokens between two pages, the mean of running requests meanwhile, its steady mode."""
    first, second = page(0.0, 1000.0), page(10.0, 2500.0)
    ticks = [(look(float(at), running=4, tokens=None), second if at >= 10 else first) for at in range(12)]
    found = paged(*ticks)
    assert [one.counted for one in found if one.counted is not None] == [
        Counted(
            span_s=10.0,
            decode_tokens=1500.0,
            generated_tokens=1500.0,
            requests=15.0,
            running=4.0,
            mode=NONE,
            alone=True,
        )
    ]


def test_pages_show_idleness_where_no_sums_do() -> None:
    """Without sums, two pages with one count of tokens and no request in between show that the engine is idle."""
    ticks = [(look(float(at), tokens=None), page(10.0 if at >= 10 else 0.0, 1000.0)) for at in range(12)]
    assert [one.activity for one in paged(*ticks)][8:] == [Activity.ACTIVE] * 2 + [Activity.IDLE] * 2


def test_pages_that_fell_are_a_restart() -> None:
    """Counters of a page that fell are a restart, and no negative rate."""
    found = paged((look(1.0, tokens=None), page(1.0, 500.0)), (look(2.0, tokens=None), page(2.0, 20.0)))
    assert (found[1].restarted, found[1].counted) == (True, None)


NUMBER = st.none() | st.floats(0, 1e9)
SUMS = st.none() | st.builds(
    DecodeSums, steps=st.floats(0, 1e9), requests=st.floats(0, 1e9), busy_s=st.floats(0, 1e9),
    request_busy_s=st.floats(0, 1e9), tokens=st.floats(0, 1e9),
)  # fmt: skip
COUNT = st.none() | st.integers(0, 1000)
LOADS = st.builds(
    EngineLoad,
    running=COUNT,
    waiting=COUNT,
    max_running=COUNT,
    used_tokens=COUNT,
    age_s=NUMBER,
    decoded=SUMS,
    ranks=st.integers(0, 8),
)
PAGES = st.builds(EngineCounters, decode_tokens=NUMBER, generated_tokens=NUMBER, verify_calls=NUMBER, requests=NUMBER)
TICKS = st.lists(
    st.tuples(
        st.floats(0.01, 100),
        st.none() | st.tuples(st.floats(0, 10), LOADS, st.none() | st.booleans()),
        st.none() | PAGES,
        st.sampled_from([None, NONE, CHAIN]),
    ),
    max_size=12,
)


@given(TICKS)
def test_no_history_makes_a_negative_rate_or_knowledge_of_the_unknown(
    ticks: list[tuple[float, tuple[float, EngineLoad, bool | None] | None, EngineCounters | None, Mode | None]],
) -> None:
    """Whatever comes: gains are never negative, spans add up to the time, and unknown requests are never a number."""
    track, at_s, begun = EngineTrack(), 0.0, None
    total = 0.0
    for wait, seen, counters, running in ticks:
        at_s += wait
        begun = at_s if begun is None else begun
        made = None if seen is None else Look(at_s=max(at_s - seen[0], 0.0), load=seen[1], ready=seen[2])
        paged_now = None if counters is None else Page(at_s=at_s, counters=counters)
        track, sample = advance(track, at_s=at_s, look=made, page=paged_now, mode=running)
        total += sample.span_s or 0.0
        gains = [sample.decoded.tokens, sample.decoded.busy_s] if sample.decoded is not None else []
        if sample.counted is not None:
            gains += [gain for gain in (sample.counted.decode_tokens, sample.counted.requests) if gain is not None]
        assert all(gain >= 0 for gain in gains)
        if made is None or made.load.running is None or made.load.waiting is None or made.ready is False:
            assert sample.concurrency is None
            assert sample.activity in (Activity.STALE, Activity.FROZEN, Activity.UNREADY)
        if sample.activity is Activity.IDLE:
            assert sample.concurrency in (0, None)
    assert total == pytest.approx(at_s - (begun or 0.0), abs=1e-6)


def test_sums_of_two_ranks_are_sums() -> None:
    """Adding sums and taking the difference are each other's inverse; means are of the sums."""
    both = sums(100.0) + sums(40.0)
    rest = both.since(sums(40.0))
    assert rest is not None
    assert (rest.tokens, rest.busy_s) == pytest.approx((100.0, 0.5))
    assert sums(40.0).since(both) is None
    assert (both.accept_length, both.batch, both.step_s, both.tokens_s) == pytest.approx((2.0, 1.0, 0.01, 200.0))
    assert replace(both, requests=0.0, busy_s=0.0).accept_length is None
