"""A calibration as a figure: throughput by concurrency with the crossovers, and by the tokens that a verify step checks at once."""

from __future__ import annotations

from collections.abc import Callable

from specctl.control.crossovers import Crossover
from specctl.control.mode import Mode
from specctl.control.objective import Metric
from specctl.measure.calibrate import Study
from specctl.measure.figure import Figure, Line, Mark, Panel, Point
from specctl.measure.sweep_order import Mean

ERRORS = 2.0
"""Bars are so many standard errors: they hold the truth 19 times of 20."""


def figure(study: Study) -> Figure:
    """Return the figure; the second panel is left out where no mode says how much it checks."""
    said = study.conclusion
    latency = study.ask.metric is Metric.LATENCY
    first = Panel(
        x_label="requests at once",
        y_label="tok/s of one request" if latency else "tok/s",
        lines=tuple(_line(study, mode, lambda _mode, at: at, shared=latency) for mode in study.question.modes),
        marks=tuple(_mark(study, each) for each in said.crossovers),
        x_log=True,
    )
    packed = tuple(
        _line(study, mode, lambda one, at: one.packed_tokens(at) or 0.0)
        for mode in study.question.modes
        if mode.packed_tokens(1) is not None
    )
    second = Panel(x_label="tokens that a verify step checks", y_label="tok/s", lines=packed, x_log=True)
    facts = study.facts
    engine = " ".join(filter(None, (facts.profile, facts.engine_version)))
    told = [f"{facts.gpu_count}× {facts.gpu}" if facts.gpu else None, engine, facts.prompts, study.began]
    return Figure(
        title=f"{study.host} · {study.server}: throughput by mode",
        panels=(first, second) if packed else (first,),
        note=" · ".join(filter(None, told)) + " · bars: two standard errors · shade: where the best mode is not known",
    )


def _line(study: Study, mode: Mode, x: Callable[[Mode, float], float], *, shared: bool = False) -> Line:
    """Return a mode's points, a request's share of them where that is wanted."""
    rows = [(at, order.means[mode]) for at, order in study.conclusion.orders.items() if mode in order.means]
    points = tuple(_point(x(mode, at), mean, at if shared else 1) for at, mean in rows)
    return Line(label=study.names[mode], points=points)


def _point(x: float, mean: Mean, share: int) -> Point:
    y = mean.tokens_s / share
    if mean.error is None:
        return Point(x=x, y=y)
    reach = ERRORS * mean.error / share
    return Point(x=x, y=y, low=y - reach, high=y + reach)


def _mark(study: Study, each: Crossover) -> Mark:
    at = each.at if each.at is not None else (each.low * each.high) ** 0.5
    return Mark(
        x=at, text=f"{study.names[each.before[0]]} → {study.names[each.after[0]]}", low=each.low, high=each.high
    )
