"""The concurrency profile: time adds up, unknown stays unknown, hours of the week are remembered, rates are measured."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control import profile_codec
from specctl.control.mode import Mode, mode
from specctl.control.profile import (
    HOUR_S,
    HOURS,
    SLICE_S,
    SLICES,
    WEEK_S,
    ConcurrencyProfile,
    decoded,
    expected,
    hour_of_week,
    hour_seconds,
    observations,
    observe,
    path,
    recent,
)
from specctl.control.profile_bins import BINS, TOPS, Distribution, bin_of, middle
from specctl.control.profile_rates import MAX_CELLS, Observation
from specctl.control.sample.engine import Activity, Counted, DecodeSums, EngineSample

NONE = mode("none")
CHAIN = mode("dflash", {"block_size": 8})
MONDAY = 1_795_996_800.0  # 30 November 2026, 00:00 UTC, a Monday


def sample(
    concurrency: int | None,
    span_s: float | None = 1.0,
    *,
    running: Mode | None = CHAIN,
    tokens: float | None = None,
    step_s: float = 0.01,
    context: float | None = None,
    ranks: int = 1,
) -> EngineSample:
    """Return a sample of a batch of that many that commits two tokens a step of a request."""
    batch = max(concurrency or 0, 1)
    sums = None
    if tokens is not None:
        steps = tokens / 2 / batch
        sums = DecodeSums(
            steps=steps,
            requests=tokens / 2,
            busy_s=steps * step_s,
            request_busy_s=steps * step_s * batch,
            tokens=tokens,
        )
    return EngineSample(
        at_s=0.0,
        span_s=span_s,
        activity=Activity.STALE if concurrency is None else Activity.ACTIVE,
        running=concurrency,
        waiting=None if concurrency is None else 0,
        mode=running,
        decoded=sums,
        context_tokens=context,
        ranks=ranks,
    )


def filled(*parts: tuple[float, EngineSample], begin: ConcurrencyProfile | None = None) -> ConcurrencyProfile:
    """Return the profile of samples, each at its Unix time."""
    profile = begin or ConcurrencyProfile()
    for now, one in parts:
        profile = observe(profile, one, now)
    return profile


def test_bins_cover_every_concurrency() -> None:
    """Each bin ends where the next begins, and its middle lies in it."""
    assert [bin_of(top) for top in TOPS] == list(range(BINS - 1))
    assert (bin_of(TOPS[-1] + 1), bin_of(2.5), bin_of(4 + 1e-14)) == (BINS - 1, 3, 4)
    assert all(bin_of(middle(place)) == place for place in range(BINS))


def test_a_distribution_tells_its_shares() -> None:
    """Half idle, half at four: shares, mean and quantiles; unknown time is beside them."""
    load = Distribution().add(0, 10.0).add(4, 10.0).add(None, 100.0)
    assert (load.points(), load.mean, load.idle_ratio) == (((0.0, 0.5), (4.0, 0.5)), 2.0, 0.5)
    assert (load.quantile(0.5), load.quantile(0.9), load.unknown_s) == (0.0, 4.0, 100.0)


def test_nothing_observed_tells_nothing() -> None:
    """A distribution of unknown time has no mean, no share and no quantile."""
    load = Distribution().add(None, 5.0)
    assert (load.points(), load.mean, load.idle_ratio, load.quantile(0.5)) == ((), None, None, None)


def test_the_hour_of_the_week_begins_on_monday() -> None:
    """0 is Monday 00:00 UTC, 167 the hour before it."""
    assert (hour_of_week(MONDAY), hour_of_week(MONDAY + HOUR_S), hour_of_week(MONDAY - 1)) == (0, 1, HOURS - 1)


def test_recent_time_is_that_of_the_horizon() -> None:
    """Two hours at one request and then one at nine: the last hour knows of the nine alone."""
    minutes = [(MONDAY + 60 * at, sample(1 if at < 120 else 9, 60.0)) for at in range(180)]
    profile = filled(*minutes)
    now = MONDAY + 180 * 60
    assert recent(profile, HOUR_S - SLICE_S, now).points() == ((10.5, 1.0),)
    assert recent(profile, 3 * HOUR_S, now).mean == pytest.approx((120 + 60 * 9) / 180)


def test_a_day_is_the_most_that_is_recent() -> None:
    """Slices do not grow without bound."""
    profile = filled(*((MONDAY + SLICE_S * at, sample(1, 10.0)) for at in range(SLICES + 50)))
    assert len(profile.slices) == SLICES
    assert profile.observed_s == 10.0 * (SLICES + 50)


def test_an_hour_of_the_week_comes_again() -> None:
    """Mondays at nine were busy for three weeks: that is expected next Monday; an hour never seen is not known."""
    nine = 9 * HOUR_S
    weeks = [(MONDAY + week * WEEK_S + nine + 60 * at, sample(12, 60.0)) for week in range(3) for at in range(60)]
    profile = filled(*weeks)
    next_nine = MONDAY + 3 * WEEK_S + nine
    load = expected(profile, next_nine)
    assert load is not None
    assert load.mean == pytest.approx(12.0)
    assert expected(profile, next_nine + HOUR_S) is None
    assert hour_seconds(profile, 9) == {middle(bin_of(12)): load.observed_s}
    assert hour_seconds(profile, 10) is None


def test_old_weeks_count_less() -> None:
    """Four weeks later the same hour is idle: what is expected moves by more than half."""
    old = filled(*((MONDAY + 60 * at, sample(8, 60.0)) for at in range(60)))
    new = filled(*((MONDAY + 4 * WEEK_S + 60 * at, sample(0, 60.0)) for at in range(60)), begin=old)
    load = expected(new, MONDAY + 8 * WEEK_S)
    assert load is not None
    assert load.mean == pytest.approx(8 / 3, rel=0.05)


def test_a_little_history_is_none() -> None:
    """Ten minutes of one Monday are no habit."""
    assert expected(filled((MONDAY, sample(8, 600.0))), MONDAY + WEEK_S) is None


def test_the_path_ahead_has_an_hour_a_part() -> None:
    """From half past, the rest of the hour and then whole hours, as far as asked; parts without history say so."""
    profile = filled(*((MONDAY + 60 * at, sample(3, 60.0)) for at in range(60)))
    parts = path(profile, 2 * HOUR_S, MONDAY + WEEK_S - HOUR_S / 2)
    assert [(part.begin_s, part.span_s) for part in parts] == [(0, 1800), (1800, 3600), (5400, 1800)]
    assert [part.load is not None for part in parts] == [False, True, False]
    assert sum(part.span_s for part in path(profile, 9e9, MONDAY)) == WEEK_S


def test_a_rate_is_measured_by_mode_batch_and_context() -> None:
    """Four streams in a chain: 4 × 2 tokens in 10 ms are 800 a second, of which each request has 200."""
    profile = filled(*((MONDAY + at, sample(4, tokens=800.0, context=3000.0)) for at in range(10)))
    found = observations(profile, MONDAY + 60)
    assert [(one.mode, one.age_s, one.context_tokens) for one in found] == [(CHAIN, 51.0, 3000.0)]
    assert (found[0].concurrency, found[0].tokens_s, found[0].accept_length) == pytest.approx((4.0, 800.0, 2.0))
    assert (found[0].weight, found[0].variance) == pytest.approx((10.0, 0.0), abs=1e-3)
    assert found[0].request_tokens_s == pytest.approx(200.0)


def test_a_rate_of_several_ranks_is_the_whole_engines() -> None:
    """Sums of two data-parallel ranks are of both: twice the batch and twice the tokens a second of one."""
    found = observations(filled((MONDAY, sample(4, tokens=800.0, ranks=2))), MONDAY)
    assert (found[0].concurrency, found[0].tokens_s) == pytest.approx((8.0, 1600.0))


def test_the_spread_of_rates_is_told() -> None:
    """Two rates, half the time each, 200 apart: a variance of 100²."""
    rates = [sample(1, tokens=200.0), sample(1, tokens=200.0 * 2, step_s=0.005)]
    found = observations(filled((MONDAY, rates[0]), (MONDAY, rates[1])), MONDAY)
    assert (found[0].tokens_s, found[0].variance) == pytest.approx((300.0, 100.0**2))


@pytest.mark.parametrize(
    "one",
    [sample(4, running=None, tokens=800.0), sample(4), sample(4, tokens=0.0), sample(None)],
    ids=["no-mode", "no-sums", "no-tokens", "stale"],
)
def test_what_measures_nothing_is_no_observation(one: EngineSample) -> None:
    """Without a mode, without sums and without tokens there is no rate."""
    assert observations(filled((MONDAY, one)), MONDAY) == ()


def counted(**changes: object) -> EngineSample:
    """Return a sample of an engine that has counters only."""
    given = {"span_s": 10.0, "decode_tokens": 1500.0, "running": 4.0, "mode": NONE, "alone": True, **changes}
    return EngineSample(at_s=0.0, span_s=1.0, activity=Activity.ACTIVE, counted=Counted(**given))  # type: ignore[arg-type]  # as tests give it


def test_counters_measure_where_there_are_no_sums() -> None:
    """Tokens between two pages over their time are the rate at the mean of running requests."""
    found = observations(filled((MONDAY, counted())), MONDAY)
    assert found == (
        Observation(
            mode=NONE, concurrency=4.0, tokens_s=150.0, accept_length=None, weight=10.0, variance=None, age_s=0.0
        ),
    )


@pytest.mark.parametrize(
    "changes", [{"alone": False}, {"idle": True}, {"running": None}, {"mode": None}, {"decode_tokens": None}]
)
def test_counters_that_say_nothing_of_speed_are_left_out(changes: dict[str, object]) -> None:
    """Beside sums, over an idle moment, or without the requests, the mode or the tokens, counters are no rate."""
    assert observations(filled((MONDAY, counted(**changes))), MONDAY) == ()


def test_measurements_fade_and_are_bounded() -> None:
    """A week halves a weight; however many modes there are, the cells are bounded and the newest are kept."""
    profile = filled((MONDAY, sample(1, tokens=200.0)))
    assert observations(profile, MONDAY + WEEK_S)[0].weight == pytest.approx(0.5)
    budgets = [mode("ddtree", {"tree_budget": budget}) for budget in range(1, MAX_CELLS + 100)]
    many = filled(*((MONDAY + at, sample(1, tokens=200.0, running=one)) for at, one in enumerate(budgets)))
    assert len(many.cells) == MAX_CELLS
    assert {one.mode for one in observations(many, MONDAY)} == set(budgets[-MAX_CELLS:])


def test_a_clock_that_jumps_loses_little() -> None:
    """Ten years forth and back: measurements keep a sixteenth of their weight, hours of the week too, ages are not negative."""
    before = filled(*((MONDAY + at, sample(4, tokens=800.0)) for at in range(1000)))
    forth = observe(before, sample(4, tokens=800.0), MONDAY + 3652 * 86400)
    back = observe(forth, sample(4, tokens=800.0), MONDAY + 1001)
    found = observations(back, MONDAY + 1001)
    assert found[0].weight == pytest.approx(1000 / 16, rel=0.05)
    assert found[0].age_s == 0.0
    assert recent(back, HOUR_S, MONDAY + 1001).observed_s > 0
    assert all(part.begin_s <= MONDAY + 1001 for part in back.slices)


def test_decoded_tells_tokens_of_the_recent_past() -> None:
    """Tokens and accept length of the horizon are sums of its slices."""
    profile = filled(*((MONDAY + at, sample(4, tokens=800.0)) for at in range(30)))
    found = decoded(profile, HOUR_S, MONDAY + 30)
    assert (found.tokens, found.accept_length) == (24_000.0, 2.0)


SAMPLES = st.builds(
    sample,
    st.none() | st.integers(0, 3000),
    st.none() | st.floats(0, 100),
    running=st.sampled_from([None, NONE, CHAIN]),
    tokens=st.none() | st.floats(0, 1e6),
    context=st.none() | st.floats(0, 1e6),
)
TIMES = st.floats(0, 4e9)


@given(st.lists(st.tuples(TIMES, SAMPLES), max_size=25))
def test_weights_of_time_sum_to_the_time_observed(parts: list[tuple[float, EngineSample]]) -> None:
    """Observed and unknown time add up to the spans, whatever the wall clock says; unknown time is in no bin."""
    profile = filled(*parts)
    known = sum(one.span_s or 0.0 for _, one in parts if one.concurrency is not None)
    unknown = sum(one.span_s or 0.0 for _, one in parts if one.concurrency is None)
    assert (profile.observed_s, profile.unknown_s) == pytest.approx((known, unknown))
    assert sum(part.load.observed_s for part in profile.slices) <= known + 1e-6


@given(st.lists(st.tuples(st.floats(0, 60), SAMPLES), max_size=25))
def test_slices_hold_all_of_a_day(parts: list[tuple[float, EngineSample]]) -> None:
    """On a clock that does not jump, the recent past holds every second of it, in the bin where it was."""
    now, made = MONDAY, []
    for wait, one in parts:
        now += wait
        made.append((now, one))
    profile = filled(*made)
    load = recent(profile, 86400.0, now)
    assert load.observed_s == pytest.approx(profile.observed_s)
    assert load.unknown_s == pytest.approx(profile.unknown_s)


@given(st.lists(st.tuples(TIMES, SAMPLES), max_size=25), TIMES)
def test_observations_are_sensible(parts: list[tuple[float, EngineSample]], now: float) -> None:
    """Rates, weights and ages are never negative, and a variance is of more than one sample."""
    for found in observations(filled(*parts), now):
        assert min(found.concurrency, found.tokens_s, found.weight, found.age_s, found.variance or 0.0) >= 0


@given(st.lists(st.tuples(TIMES, SAMPLES), max_size=25))
def test_a_profile_survives_its_file(parts: list[tuple[float, EngineSample]]) -> None:
    """What is written is read again, to the digits that are written, and once more exactly."""
    profile = filled(*parts)
    document = profile_codec.to_json(profile)
    again = profile_codec.from_json(json.loads(json.dumps(document)))
    assert again.observed_s == pytest.approx(profile.observed_s, abs=1e-3)
    assert {cell.mode for cell in again.cells} == {cell.mode for cell in profile.cells}
    assert profile_codec.from_json(profile_codec.to_json(again)) == again


def largest() -> Iterator[tuple[float, EngineSample]]:
    """Yield samples that fill every slice, hour, bin and cell."""
    for at in range(SLICES):
        for top in (*TOPS, 5000):
            yield MONDAY + 1e9 + SLICE_S * at, sample(top, 12.345)
    for hour in range(HOURS):
        for top in (*TOPS, 5000):
            yield MONDAY + 1e9 + HOUR_S * hour + SLICE_S * SLICES, sample(top, 12.345)
    for budget in range(MAX_CELLS):
        knobs = {"block_size": 16, "topk_cap": 8, "tree_budget": budget + 500}
        yield 3e9, sample(5000, tokens=1234.567, running=mode("ddtree", knobs), context=1234.567)


def test_the_largest_profile_is_within_its_bound() -> None:
    """A profile that is full in every part is written in under half a megabyte."""
    document = profile_codec.to_json(filled(*largest()))
    assert len(json.dumps(document, separators=(",", ":"))) < profile_codec.MAX_BYTES
    assert profile_codec.to_json(profile_codec.from_json(document)) == document


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
)


@given(st.sampled_from(["version", "slices", "week", "cells", "observed_s"]), JSON)
def test_a_wrong_document_is_refused_and_never_half_read(key: str, value: object) -> None:
    """Anything in the place of a part is a profile or a ProfileFormatError, and no other error."""
    document = {**profile_codec.to_json(filled((MONDAY, sample(4, tokens=800.0)))), key: value}
    with contextlib.suppress(profile_codec.ProfileFormatError):
        again = profile_codec.from_json(document)
        assert profile_codec.from_json(profile_codec.to_json(again)) == again


def test_a_newer_version_is_told_as_such() -> None:
    """A file of a later version is refused, and said to be that."""
    with pytest.raises(profile_codec.ProfileFormatError) as caught:
        profile_codec.from_json({"version": 2})
    assert caught.value.newer
