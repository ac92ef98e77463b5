"""What the hours of the week say of a change: the gain until the other mode stops being better, as these hours were before.

Asked seldom (Limits.look_s), and only of changes that take long enough for hours to matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specctl.control.limits import Limits
from specctl.control.policy_book import Book
from specctl.control.policy_types import History

HOUR_S = 3600.0
HOURS = 168
MONDAY_OFFSET = 72
"""Unix time began on a Thursday, 00:00 UTC: 72 hours into a week that begins on Monday."""
LEAST_KNOWN_S = 2 * HOUR_S
"""With fewer known hours ahead than this, the history says nothing of a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A change as the history sees it, in the objective's worth.

    `gain`: what it brings until the other mode is at its best lead, or the horizon. `dwell_s`: how long that takes. `back`: whether
    the lead is lost again before the horizon, so that the way back will be wanted. `pace`: the best mode's mean worth per second.
    `begun`: whether the other mode is ahead in the hour at hand already.
    """

    gain: float
    dwell_s: float
    back: bool
    pace: float
    begun: bool


def outlook(book: Book, place: int, history: History, wall_s: float, limits: Limits) -> Outlook | None:
    """Return what to expect of going to that mode now; None where too little of the time ahead is known."""
    stretches = list(_ahead(book, place, history, wall_s, limits.horizon_s))
    known_s = sum(seconds for seconds, _, _ in stretches)
    if known_s < LEAST_KNOWN_S:
        return None
    leads = list(itertools.accumulate(seconds * lead for seconds, lead, _ in stretches))
    spans = list(itertools.accumulate(seconds for seconds, _, _ in stretches))
    top = max(range(len(leads)), key=leads.__getitem__)
    pace = sum(seconds * best for seconds, _, best in stretches) / known_s
    if leads[top] <= 0:
        return Outlook(gain=0.0, dwell_s=0.0, back=True, pace=pace, begun=False)
    back = top < len(leads) - 1
    return Outlook(gain=leads[top], dwell_s=spans[top], back=back, pace=pace, begun=leads[0] > 0)


def _ahead(
    book: Book, place: int, history: History, wall_s: float, horizon_s: float
) -> Iterator[tuple[float, float, float]]:
    """Yield (seconds, the mode's lead, the best mode's worth) hour by hour, up to the first hour that is not known."""
    begin = 0.0
    while begin < horizon_s:
        at = wall_s + begin
        span = min((at // HOUR_S + 1) * HOUR_S - at, horizon_s - begin)
        seconds = history.seconds(hour_of_week(at))
        found = None if seconds is None else _means(book, place, seconds)
        if found is None or span <= 0:
            return
        yield span, *found
        begin += span


def _means(book: Book, place: int, seconds: Mapping[float, float]) -> tuple[float, float] | None:
    total = lead = best = 0.0
    for concurrency, part in seconds.items():
        row = book.row(concurrency)
        if row is None:
            continue
        total += part
        lead += part * (row.worths[place] - row.own)
        best += part * row.best
    return (lead / total, best / total) if total > 0 else None


def hour_of_week(wall_s: float) -> int:
    """Return the hour of the week, 0 being Monday 00:00 UTC."""
    return int(wall_s // HOUR_S + MONDAY_OFFSET) % HOURS
