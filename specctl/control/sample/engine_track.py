"""Fold looks at an engine into samples, one a tick: what it does, how many requests it has, and what it decoded since.

Pure. Here the traps of single answers end: counters that begin anew, one answer read twice, gauges of a scheduler that stopped, an
algo that changed in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from specctl.control.mode import Mode
from specctl.control.sample.engine import (
    FROZEN_AFTER_S,
    LIVE_WITHIN_S,
    STALE_AFTER_S,
    Activity,
    Counted,
    DecodeSums,
    EngineCounters,
    EngineSample,
    Look,
    Page,
)

LONGEST_SPAN_S = 30.0
"""Of a longer time between two ticks (a suspended machine, a stopped agent) nothing is known but that it passed."""
QUIET_PAGE_S = 15.0
"""Two pages further apart than this show no idleness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What was the case between two pages: Σ running × seconds and seconds, or that it cannot be said."""

    running_s: float = 0.0
    span_s: float = 0.0
    known: bool = True
    idle: bool = False
    mode: Mode | None = None
    steady: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTrack:
    """What the fold remembers: the last tick, the last new look and page, and since when the mode is what it is."""

    at_s: float | None = None
    look: Look | None = None
    sums: DecodeSums | None = None
    quiet: bool | None = None
    mode: Mode | None = None
    mode_at_s: float = 0.0
    page: Page | None = None
    meanwhile: Meanwhile = field(default_factory=Meanwhile)


def advance(
    track: EngineTrack, *, at_s: float, look: Look | None, page: Page | None = None, mode: Mode | None = None
) -> tuple[EngineTrack, EngineSample]:
    """Return the track after one tick, and its sample.

    `look` and `page` are the newest that there are; the same ones may come again. `mode`: what the engine is thought to run now,
    None while that is unknown or being changed. `at_s` never goes back.
    """
    fresh = look is not None and (track.look is None or look.at_s > track.look.at_s)
    sums = look.load.decoded if look is not None and fresh else None
    gained = sums.since(track.sums) if sums is not None and track.sums is not None else None
    quiet = _quiet(track, look, page, gained)
    span = None if track.at_s is None else max(at_s - track.at_s, 0.0)
    told = _sample(at_s, span, look, quiet=quiet)
    sample = replace(
        told,
        mode=mode if _steady(track, mode) else None,
        decoded=gained,
        context_tokens=None if told.running is None else _context_of(track.look, look, gained),
        counted=_counted(track, page, alone=look is not None and look.load.decoded is None and track.sums is None),
        restarted=(sums is not None and track.sums is not None and gained is None) or _restarted(track.page, page),
    )
    after = EngineTrack(
        at_s=at_s,
        look=look if fresh else track.look,
        sums=sums if sums is not None else track.sums,
        quiet=quiet,
        mode=mode,
        mode_at_s=track.mode_at_s if mode == track.mode else at_s,
        page=page if page is not None else track.page,
        meanwhile=_meanwhile(track, page, sample, mode),
    )
    return after, sample


def _steady(track: EngineTrack, mode: Mode | None) -> bool:
    """Claim that the mode has not changed since the engine published what the sums so far say."""
    if mode is None or mode != track.mode or track.look is None:
        return False
    return track.look.at_s - (track.look.load.age_s or 0.0) >= track.mode_at_s


def _quiet(track: EngineTrack, look: Look | None, page: Page | None, gained: DecodeSums | None) -> bool | None:
    """Claim that no token came since the look before; by the sums, else by two pages; None where neither shows it."""
    if gained is not None:
        return gained.tokens == 0
    if look is None or look.load.running:
        return None
    before = track.page
    if track.sums is not None or page is None or before is None or page.at_s <= before.at_s:
        return track.quiet
    now, then = page.counters.decode_tokens, before.counters.decode_tokens
    if now is None or then is None or page.at_s - before.at_s > QUIET_PAGE_S:
        return None
    return now == then


def _sample(at_s: float, span: float | None, look: Look | None, *, quiet: bool | None) -> EngineSample:
    activity = _activity(at_s, look, quiet=quiet)
    asleep = span is not None and span > LONGEST_SPAN_S
    if look is None or activity not in (Activity.ACTIVE, Activity.IDLE):
        return EngineSample(at_s=at_s, span_s=span, activity=activity)
    load = look.load
    return EngineSample(
        at_s=at_s,
        span_s=span,
        activity=activity,
        running=None if asleep else load.running,
        waiting=None if asleep else load.waiting,
        max_running=load.max_running,
        ranks=max(load.ranks, 1),
    )


def _context_of(before: Look | None, look: Look | None, gained: DecodeSums | None) -> float | None:
    """Return the mean context of a request now, or of those that took the steps and have ended since."""
    found = _context(look)
    return _context(before) if found is None and gained is not None and gained.tokens > 0 else found


def _context(look: Look | None) -> float | None:
    """Return the mean context of the requests that ran; what stands in the pool while none runs is nobody's."""
    if look is None or not look.load.running or not look.load.used_tokens:
        return None
    return look.load.used_tokens / look.load.running


def _activity(at_s: float, look: Look | None, *, quiet: bool | None) -> Activity:
    if look is None or at_s - look.at_s > STALE_AFTER_S or look.load.running is None or look.load.waiting is None:
        return Activity.STALE
    load = look.load
    if look.ready is False:
        return Activity.UNREADY if load.age_s is None or load.age_s <= FROZEN_AFTER_S else Activity.FROZEN
    if load.age_s is not None and load.age_s > FROZEN_AFTER_S:
        return Activity.FROZEN
    live = load.age_s is not None and at_s - look.at_s + load.age_s <= LIVE_WITHIN_S
    if live and quiet is True and load.running == 0 and load.waiting == 0:
        return Activity.IDLE
    return Activity.ACTIVE


def _restarted(before: Page | None, page: Page | None) -> bool:
    if before is None or page is None or page.at_s <= before.at_s:
        return False
    return any(
        now is not None and then is not None and now < then
        for now, then in zip(_counters(page.counters), _counters(before.counters), strict=True)
    )


def _counters(counters: EngineCounters) -> tuple[float | None, ...]:
    return (counters.decode_tokens, counters.generated_tokens, counters.verify_calls, counters.requests)


def _counted(track: EngineTrack, page: Page | None, *, alone: bool) -> Counted | None:
    before = track.page
    if before is None or page is None or page.at_s <= before.at_s or _restarted(before, page):
        return None
    gained = [
        None if now is None or then is None else now - then
        for now, then in zip(_counters(page.counters), _counters(before.counters), strict=True)
    ]
    while_s = track.meanwhile
    return Counted(
        span_s=page.at_s - before.at_s,
        decode_tokens=gained[0],
        generated_tokens=gained[1],
        verify_calls=gained[2],
        requests=gained[3],
        running=while_s.running_s / while_s.span_s if while_s.known and while_s.span_s > 0 else None,
        mode=while_s.mode if while_s.steady else None,
        idle=while_s.idle,
        alone=alone,
    )


def _meanwhile(track: EngineTrack, page: Page | None, sample: EngineSample, mode: Mode | None) -> Meanwhile:
    """Return what was the case since the newest page, this tick included."""
    if page is not None and (track.page is None or page.at_s > track.page.at_s):
        return Meanwhile(mode=mode)
    so_far = track.meanwhile
    span = sample.span_s or 0.0
    return Meanwhile(
        running_s=so_far.running_s + span * (sample.running or 0),
        span_s=so_far.span_s + span,
        known=so_far.known and sample.running is not None,
        idle=so_far.idle or sample.activity is Activity.IDLE,
        mode=mode,
        steady=so_far.steady and mode is not None and mode == so_far.mode,
    )
