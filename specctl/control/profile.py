"""The concurrency profile of one server: how many requests it has, lately and by hour of the week, and how fast each mode was.

Pure: `observe` folds samples in, the rest are the policy's questions. `now` is Unix time, which orders hours and ages; how long a
sample counts is its own `span_s` (monotonic), so that a wall clock that jumps invents no time. Unknown time is kept apart and is
never read as idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from specctl.control.profile_bins import Distribution, merged, middle
from specctl.control.profile_rates import Cell, Observation, halved, learn, measured, observation
from specctl.control.sample.engine import NO_STEPS, DecodeSums, EngineSample

SLICE_S = 600.0
SLICES = 144
"""The recent past: a day in slices of ten minutes."""
HOUR_S = 3600.0
HOURS = 168
WEEK_S = HOURS * HOUR_S
WEEK_HALF_LIFE_S = 4 * WEEK_S
"""An hour of the week counts half after four weeks: a month's habits outweigh the season before; no source, a choice."""
MONDAY_OFFSET = 72
"""Unix time began on a Thursday, 00:00 UTC: 72 hours into a week that begins on Monday."""
LEAST_HISTORY_S = 900.0
"""An hour of the week with less observed time behind it than this tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Ten minutes: `begin_s` is Unix time, a multiple of SLICE_S; `decoded` sums over its decode steps, of all modes."""

    begin_s: float
    load: Distribution = field(default_factory=Distribution)
    decoded: DecodeSums = NO_STEPS


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekHour:
    """One hour of the week, its weeks decayed; `at_s` is Unix time of its last sample."""

    at_s: float
    load: Distribution = field(default_factory=Distribution)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyProfile:
    """All that is remembered; built by `observe` alone.

    `observed_s` and `unknown_s`: seconds folded in since the beginning, never decayed.
    """

    slices: tuple[Slice, ...] = ()
    week: tuple[WeekHour | None, ...] = (None,) * HOURS
    cells: tuple[Cell, ...] = ()
    observed_s: float = 0.0
    unknown_s: float = 0.0

    def __post_init__(self) -> None:
        if len(self.week) != HOURS or len(self.slices) > SLICES:
            raise ValueError(f"a profile has {HOURS} hours and at most {SLICES} slices")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPart:
    """A part of the time ahead: it begins `begin_s` seconds from now and lasts `span_s`; `load` is None without history."""

    begin_s: float
    span_s: float
    load: Distribution | None


def hour_of_week(now: float) -> int:
    """Return the hour of the week, 0 being Monday 00:00 UTC; `now` is Unix time."""
    return int(now // HOUR_S + MONDAY_OFFSET) % HOURS


def observe(profile: ConcurrencyProfile, sample: EngineSample, now: float) -> ConcurrencyProfile:
    """Fold a sample in; one without a span (the first) changes nothing."""
    if sample.span_s is None:
        return profile
    concurrency, span = sample.concurrency, sample.span_s
    found = measured(sample)
    return ConcurrencyProfile(
        slices=_sliced(profile.slices, sample, concurrency, span, now),
        week=_in_week(profile.week, concurrency, span, now),
        cells=profile.cells if found is None else learn(profile.cells, found, now),
        observed_s=profile.observed_s + (0.0 if concurrency is None else span),
        unknown_s=profile.unknown_s + (span if concurrency is None else 0.0),
    )


def _sliced(
    slices: tuple[Slice, ...], sample: EngineSample, concurrency: int | None, span: float, now: float
) -> tuple[Slice, ...]:
    """Add to the newest slice, or begin one; a clock that goes back by more than a slice takes the slices ahead of it away."""
    begin = now // SLICE_S * SLICE_S
    kept = slices
    if kept and begin < kept[-1].begin_s - SLICE_S:
        kept = tuple(part for part in kept if part.begin_s <= begin)
    current = kept[-1] if kept and kept[-1].begin_s >= begin else None
    before = kept if current is None else kept[:-1]
    part = current or Slice(begin_s=begin)
    decoded = part.decoded if sample.decoded is None else part.decoded + sample.decoded
    part = replace(part, load=part.load.add(concurrency, span), decoded=decoded)
    return (*before[-(SLICES - 1) :], part)


def _in_week(
    week: tuple[WeekHour | None, ...], concurrency: int | None, span: float, now: float
) -> tuple[WeekHour | None, ...]:
    place = hour_of_week(now)
    before = week[place]
    load = Distribution() if before is None else before.load
    if before is not None and now - before.at_s > HOUR_S:
        load = load.scaled(halved(now - before.at_s, WEEK_HALF_LIFE_S))
    found = WeekHour(at_s=now, load=load.add(concurrency, span))
    return (*week[:place], found, *week[place + 1 :])


def recent(profile: ConcurrencyProfile, horizon_s: float, now: float) -> Distribution:
    """Return the distribution of concurrency over the last `horizon_s` seconds, to a slice's exactness, at most a day."""
    return merged(tuple(part.load for part in _within(profile, horizon_s, now)))


def decoded(profile: ConcurrencyProfile, horizon_s: float, now: float) -> DecodeSums:
    """Return the sums over decode steps of that time: accept length, tokens a second of decoding in all and of a request."""
    total = NO_STEPS
    for part in _within(profile, horizon_s, now):
        total = total + part.decoded
    return total


def _within(profile: ConcurrencyProfile, horizon_s: float, now: float) -> Iterator[Slice]:
    return (part for part in profile.slices if now - horizon_s < part.begin_s + SLICE_S and part.begin_s <= now)


def path(profile: ConcurrencyProfile, horizon_s: float, now: float) -> tuple[PathPart, ...]:
    """Return what to expect from now on, hour by hour, as the same hours of past weeks were; at most a week ahead."""
    parts = []
    begin, end = 0.0, min(horizon_s, WEEK_S)
    while begin < end:
        at = now + begin
        span = min((at // HOUR_S + 1) * HOUR_S - at, end - begin)
        if span <= 0:
            break  # the clock is so far out that an hour is below its grain
        parts.append(PathPart(begin_s=begin, span_s=span, load=expected(profile, at)))
        begin += span
    return tuple(parts)


def expected(profile: ConcurrencyProfile, at: float) -> Distribution | None:
    """Return how that hour of the week was in the past; None with too little history. `at` is Unix time."""
    hour = profile.week[hour_of_week(at)]
    return hour.load if hour is not None and hour.load.observed_s >= LEAST_HISTORY_S else None


def hour_seconds(profile: ConcurrencyProfile, hour: int) -> Mapping[float, float] | None:
    """Return seconds spent at each concurrency in that hour of the week (0 is Monday 00:00 UTC); None with too little history.

    What policy_types.History asks for; weeks that lie back count less.
    """
    found = profile.week[hour % HOURS]
    if found is None or found.load.observed_s < LEAST_HISTORY_S:
        return None
    return {middle(place): part for place, part in enumerate(found.load.seconds) if part > 0}


def observations(profile: ConcurrencyProfile, now: float) -> tuple[Observation, ...]:
    """Return every measured rate, by mode and batch: the throughput model's input."""
    return tuple(observation(cell, now) for cell in sorted(profile.cells, key=lambda cell: cell.key))
