"""All policies over one load: each static mode, thresholds, ours, and what could have been done with the future known.

The yardstick of a series is the clairvoyant schedule, which is exact. With queueing there is none: a switch moves work into the
future. There the yardstick is the best in hindsight of that schedule, every static mode and tuned thresholds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.replay import choosers, clairvoyant, schedule, score
from specctl.control.replay.choosers import HOLD_S, MARGIN_RATIO, Chooser, Planned, Threshold
from specctl.control.replay.load import Requests, Series, concurrency
from specctl.control.replay.outage import Outage
from specctl.control.replay.queueing import Server
from specctl.control.replay.schedule import Schedule
from specctl.control.replay.score import Score
from specctl.control.replay.service import Service
from specctl.control.replay.worth import Worth

STATIC, THRESHOLD, HYSTERESIS, OURS, CLAIRVOYANT, HINDSIGHT = (
    "static", "threshold", "hysteresis", "agent", "clairvoyant", "hindsight",
)  # fmt: skip
STEP_S = 1.0
Span = tuple[float, float, Mode | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every policy of a comparison shares: the server, what it is to be good at, what a switch costs, and the first mode."""

    service: Service
    objective: Objective
    outage: Outage
    start: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy and what it made of the load; `mode` for a static one; `spans`: what it did, None while switching."""

    policy: str
    mode: Mode | None = None
    score: Score
    spans: Sequence[Span] = ()

    @property
    def name(self) -> str:
        """The policy as a table names it: a static one is its mode."""
        return self.policy if self.mode is None else str(self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every policy over one load; the last row is the yardstick. `series`: the concurrency that it was planned on.

    `free_gain_ratio`: by how much switching would beat the best static mode on that concurrency if it cost nothing; None: idle.
    """

    setting: Setting
    series: Series
    rows: Sequence[Row]
    queueing: bool
    free_gain_ratio: float | None

    @property
    def yardstick(self) -> Row:
        """The row that regret is told against."""
        return self.rows[-1]

    def regret(self, row: Row) -> float | None:
        """Return the part of the yardstick's value that a policy missed."""
        return score.regret_ratio(row.score.value, self.yardstick.score.value)


# Makes a chooser of ours for a setting: the same decide() that the agent runs.
Maker = Callable[[Setting], Chooser]


def statics(setting: Setting, load: Requests | Series) -> tuple[Row, ...]:
    """Return every mode's row where it serves from the first to the last; the first mode of the setting plays no part."""
    found = []
    for mode in setting.service.rates:
        alone = replace(setting, start=mode)
        row = queue_row(alone, load, STATIC, None) if isinstance(load, Requests) else _series_static(alone, load)
        found.append(replace(row, mode=mode))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One policy's share of a comparison; shares know nothing of each other, so that they may be worked out side by side."""

    policy: str
    setting: Setting
    load: Requests | Series
    series: Series
    ours: Maker
    fixed: Sequence[Row]

    def row(self) -> Row:
        """Work the policy's row out."""
        values = Worth(self.setting.service, self.setting.objective)
        match self.policy:
            case "clairvoyant" | "hindsight":
                return self._yardstick(values)
            case "threshold":
                chooser: Chooser = Threshold(worth=values)
            case "hysteresis":
                chooser = Threshold(worth=values, hold_s=HOLD_S, margin=MARGIN_RATIO)
            case _:
                chooser = self.ours(self.setting)
        if isinstance(self.load, Requests):
            return queue_row(self.setting, self.load, self.policy, chooser)
        return series_row(self.setting, self.load, values, self.policy, driven(self.setting, self.load, chooser))

    def _yardstick(self, values: Worth) -> Row:
        if isinstance(self.load, Requests):
            return in_hindsight(self.setting, self.load, self.series, values, self.fixed)
        plan = clairvoyant.plan(self.series, values, self.setting.start, self.setting.outage.seconds)
        return series_row(self.setting, self.series, values, self.policy, plan)


# Works tasks out, in their order: the builtin map, or one that does several at a time.
Run = Callable[[Callable[[Task], Row], Sequence[Task]], Iterable[Row]]


def compare(
    setting: Setting, load: Requests | Series, ours: Maker, fixed: Sequence[Row], *, run: Run = map
) -> Comparison:
    """Compare all policies; `fixed`: the static modes' rows.

    A series is given from outside and does not react. Requests share the server; what a switch keeps waiting is served after it.
    """
    queueing = isinstance(load, Requests)
    series = at_server(setting, load, fastest_mode(fixed)) if isinstance(load, Requests) else load
    tasks = [
        Task(policy=policy, setting=setting, load=load, series=series, ours=ours, fixed=fixed)
        for policy in (OURS, HINDSIGHT if queueing else CLAIRVOYANT, THRESHOLD, HYSTERESIS)
    ]
    mine, yardstick, *thresholds = run(Task.row, tasks)
    return Comparison(
        setting=setting,
        series=series,
        rows=(*fixed, *thresholds, mine, yardstick),
        queueing=queueing,
        free_gain_ratio=_free_gain(Worth(setting.service, setting.objective), series),
    )


def _free_gain(values: Worth, series: Series) -> float | None:
    """Return what the best mode of every step is worth over the best static mode, less one."""
    steps = Counter(series.levels)
    free = sum(max(values.rows[level]) * count for level, count in steps.items())
    static = max(sum(values.of(mode, level) * count for level, count in steps.items()) for mode in values.modes)
    return free / static - 1 if static > 0 else None


def driven(setting: Setting, series: Series, chooser: Chooser) -> Schedule:
    """Return the schedule that a chooser makes of a series."""
    return choosers.drive(series, chooser, setting.start, setting.outage.seconds)


def _series_static(setting: Setting, series: Series) -> Row:
    values = Worth(setting.service, setting.objective)
    return series_row(setting, series, values, STATIC, Schedule(start=setting.start))


def series_row(setting: Setting, series: Series, values: Worth, policy: str, plan: Schedule) -> Row:
    """Score a schedule on a series."""
    spent = schedule.times(series, plan, setting.outage.seconds)
    spans = tuple(schedule.stretches(series, plan, setting.outage.seconds))
    return Row(policy=policy, score=score.of_series(setting.service, series, values, spent), spans=spans)


def best_mode(fixed: Sequence[Row]) -> Mode:
    """Return the mode of the static row of the greatest value; of equals the first."""
    return _mode(max(fixed, key=lambda row: row.score.value))


def worst_mode(fixed: Sequence[Row]) -> Mode:
    """Return the mode of the static row of the least value; of equals the first."""
    return _mode(min(fixed, key=lambda row: row.score.value))


def fastest_mode(fixed: Sequence[Row]) -> Mode:
    """Return the mode of the static row of the least time per token: where all serve the same tokens, it still tells them apart."""
    return _mode(min(fixed, key=lambda row: math.inf if row.score.mean_s is None else row.score.mean_s))


def _mode(row: Row) -> Mode:
    if row.mode is None:
        raise ValueError("a row of a static policy has its mode")
    return row.mode


def at_server(setting: Setting, requests: Requests, mode: Mode) -> Series:
    """Return the concurrency of a server that stays in one mode: what the clairvoyant schedule is planned on."""
    server = Server(setting.service, requests, mode)
    choosers.drive_server(server, None, step_s=STEP_S, span_s=requests.span_s, outage=setting.outage)
    return concurrency(requests.at_s, sorted(server.finished_s), step_s=STEP_S, span_s=requests.span_s)


def queue_row(setting: Setting, requests: Requests, policy: str, chooser: Chooser | None) -> Row:
    """Run a policy with queueing and score it."""
    server = Server(setting.service, requests, setting.start)
    served = choosers.drive_server(server, chooser, step_s=STEP_S, span_s=requests.span_s, outage=setting.outage)
    ends = (*(at for at, _ in server.log[1:]), max(requests.span_s, server.log[-1][0]))
    spans = tuple((begin, end, serving) for (begin, serving), end in zip(server.log, ends, strict=True))
    found = score.of_queue(server, requests, served, setting.objective.metric)
    return Row(policy=policy, score=found, spans=spans)


def in_hindsight(setting: Setting, requests: Requests, series: Series, values: Worth, fixed: Sequence[Row]) -> Row:
    """Return the best of the clairvoyant schedule, the static modes and tuned thresholds, each run with queueing.

    Schedule and thresholds begin in the setting's mode, as the policies do; each static mode is there from the beginning.
    """
    plan = clairvoyant.plan(series, values, setting.start, setting.outage.seconds)
    planned = queue_row(setting, requests, HINDSIGHT, Planned(plan, STEP_S))
    tried = [queue_row(setting, requests, HINDSIGHT, chooser) for chooser in choosers.tuned(values)]
    best = max((planned, *tried, *fixed), key=lambda row: row.score.value)
    return Row(policy=HINDSIGHT, score=best.score, spans=best.spans)
