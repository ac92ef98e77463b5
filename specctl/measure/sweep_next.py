"""What a sweep measures next: first everything on a coarse grid twice, then only where the answer is open, cheapest first.

Open is a concurrency at which a mode may be better than the one that leads, and the stretch between two neighbouring concurrencies
with other best modes: there one is added where the straight line between them crosses, which halves the stretch at worst as
bisection would and mostly does better. A mode that is far behind at both ends is not measured between them; one that is a little
behind may well be the best there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.measure.sweep import SURVEY_ROUNDS, Block, Place, Question, Segment, concurrencies, counted
from specctl.measure.sweep_order import Order, Standing, changes, doubt, order

NEAR_RATIO = 1.3
"""A crossover known to within such a factor of concurrency is known well enough: no load is steadier."""
MOST_TRIES = 3
"""A first round that something spoils is tried so many times in all."""
FAR = math.log(1.3)
"""So far behind at two neighbours, no mode leads between them unless its curve turns twice."""
INNER = 0.25
"""An added concurrency keeps so much of the stretch on either side, on a scale of doubling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A round that would help: where, of which modes, and the seconds until what it is for is thought to be known."""

    concurrency: int
    modes: tuple[Mode, ...]
    left_s: float


def next_block(question: Question, segments: Sequence[Segment], left_s: float) -> Block | None:
    """Return what to measure next within the seconds that are left; None where nothing is open, or nothing that helps fits."""
    number = 1 + max((each.round for each in segments), default=-1)
    tasks = _survey(question, segments) or _open(question, segments)
    fitting = [task for task in tasks if cost_s(question, segments, task.concurrency, task.modes) <= left_s]
    if not fitting:
        return None
    if not question.by_mode:
        at, modes = fitting[0].concurrency, _turned(fitting[0].modes, _rounds(segments, fitting[0].concurrency))
        return Block(number=number, places=tuple(Place(mode=mode, concurrency=at) for mode in modes))
    return _by_mode(question, fitting, left_s, number)


def cost_s(question: Question, segments: Sequence[Segment], concurrency: int, modes: Sequence[Mode]) -> float:
    """Return the seconds that a round is thought to take: what segments there took so far, else what was said of them."""
    if question.by_mode:
        return pass_s(question, [modes])
    there = [each.took_s for each in segments if each.place.concurrency == concurrency]
    known = there or [each.took_s for each in segments[-len(question.modes) :]]
    each_s = sum(known) / len(known) if known else question.segment_s + question.switch_s
    return len(modes) * each_s


def orders(question: Question, segments: Sequence[Segment]) -> Mapping[int, Order]:
    """Return the order of the modes at every concurrency that was measured, rising."""
    found = {at: order(question, at, segments) for at in concurrencies(segments)}
    return {at: each for at, each in found.items() if each is not None}


def _survey(question: Question, segments: Sequence[Segment]) -> list[_Task]:
    """Return what the grid still lacks of its first rounds, up and down it by turns; what is spoiled is tried anew."""
    good = {at: _rounds(counted(segments), at) for at in question.grid}
    lacking = [
        at for at in question.grid if good[at] < SURVEY_ROUNDS and _rounds(segments, at) < SURVEY_ROUNDS * MOST_TRIES
    ]
    fewest = min((_rounds(segments, at) for at in lacking), default=0)
    next_ones = [at for at in lacking if _rounds(segments, at) == fewest]
    upward = next_ones if fewest % 2 == 0 else next_ones[::-1]
    return [_Task(concurrency=at, modes=question.modes, left_s=0.0) for at in upward]


def _rounds(segments: Sequence[Segment], concurrency: int) -> int:
    return len({each.round for each in segments if each.place.concurrency == concurrency})


def _open(question: Question, segments: Sequence[Segment]) -> list[_Task]:
    known = orders(question, segments)
    found = [*_undecided(question, segments, known), *_between(question, segments, known)]
    return sorted(found, key=lambda task: (task.left_s, task.concurrency))


def _undecided(question: Question, segments: Sequence[Segment], known: Mapping[int, Order]) -> Iterator[_Task]:
    for at, each in known.items():
        if not (each.open or each.rounds < SURVEY_ROUNDS) or _rounds(segments, at) >= question.most_rounds:
            continue
        modes = tuple(mode for mode in question.modes if mode in each.contenders)
        wanted = max((rounds_needed(question, each, mode) for mode in each.open), default=SURVEY_ROUNDS)
        rounds = max(1.0, wanted - each.rounds)
        yield _Task(concurrency=at, modes=modes, left_s=rounds * cost_s(question, segments, at, modes))


def rounds_needed(question: Question, each: Order, mode: Mode) -> float:
    """Return the rounds after which a mode is thought to stand apart from the best one, or level with it."""
    if each.noise is None:
        return float(SURVEY_ROUNDS)
    lead, zone = each.lead(mode), math.log1p(question.level_ratio)
    apart = max(lead, zone - lead)
    for rounds in range(max(SURVEY_ROUNDS, each.rounds), question.most_rounds):
        freedom = (rounds - 1) * (len(each.means) - 1)
        reach = doubt(question, each.noise, freedom, opponents=len(question.modes) - 1, common=rounds)
        if reach is not None and reach < apart:
            return float(rounds)
    return float(question.most_rounds)


def _between(question: Question, segments: Sequence[Segment], known: Mapping[int, Order]) -> Iterator[_Task]:
    """Yield what would narrow the stretches in which the best mode changes, from both ends where the middle is level."""
    rows = list(known.values())
    for first, last in changes(rows):
        for place in dict.fromkeys((first, last - 1)):
            low, high = rows[place], rows[place + 1]
            at = _inside(low, high, crossing=last - first == 1)
            if at is None:
                continue
            ends = (rows[first], rows[last])
            modes = tuple(mode for mode in question.modes if not all(_far(end, mode) for end in ends))
            cost = SURVEY_ROUNDS * cost_s(question, segments, high.concurrency, modes)
            yield _Task(concurrency=at, modes=modes, left_s=cost)


def _far(each: Order, mode: Mode) -> bool:
    """Claim that a mode was measured, and is worse by far."""
    return each.standings.get(mode) is Standing.WORSE and each.lead(mode) > FAR


def _inside(low: Order, high: Order, *, crossing: bool) -> int | None:
    """Return a whole concurrency between two, where the best modes are thought to cross if they do; None: they are near enough."""
    if high.concurrency - low.concurrency < 2 or high.concurrency / low.concurrency <= NEAR_RATIO:
        return None
    before, after = low.best, high.best
    share = 0.5
    if crossing and after in low.means and before in high.means:
        lead, trail = low.lead(after), high.lead(before)
        share = min(max(lead / (lead + trail), INNER), 1 - INNER) if lead + trail > 0 else 0.5
    at = round(low.concurrency * math.pow(high.concurrency / low.concurrency, share))
    return min(max(at, low.concurrency + 1), high.concurrency - 1)


def _turned(modes: Sequence[Mode], turn: int) -> tuple[Mode, ...]:
    """Return the modes in an order that changes from turn to turn: each order is followed by its reverse, then another begins."""
    start = turn // 2 % len(modes)
    turned = (*modes[start:], *modes[:start])
    return turned if turn % 2 == 0 else turned[::-1]


def _by_mode(question: Question, tasks: Sequence[_Task], left_s: float, number: int) -> Block | None:
    """Return a pass over as many tasks as fit, mode by mode: a change of mode is paid once a pass."""
    chosen: list[_Task] = []
    for task in tasks:
        if pass_s(question, [each.modes for each in (*chosen, task)]) <= left_s:
            chosen.append(task)
    modes = [mode for mode in question.modes if any(mode in task.modes for task in chosen)]
    if not modes:
        return None
    levels = sorted(chosen, key=lambda task: task.concurrency)
    places = [
        Place(mode=mode, concurrency=task.concurrency)
        for mode in _turned(modes, number)
        for task in levels
        if mode in task.modes
    ]
    return Block(number=number, places=tuple(places))


def pass_s(question: Question, rounds: Sequence[Sequence[Mode]]) -> float:
    """Return the seconds of a pass mode by mode over so many rounds of these modes."""
    changes = len({mode for modes in rounds for mode in modes})
    return question.switch_s * changes + question.segment_s * sum(len(modes) for modes in rounds)
