"""An experiment as plots: every segment in the order of time, so that drift is seen, and each figure's difference; values alone."""

from __future__ import annotations

from statistics import median

from specctl.measure.ab_result import Result
from specctl.measure.ab_types import PRIMARY, Segment, quantity
from specctl.measure.figure import Figure, Line, Look, Mark, Panel, Point


def segments(result: Result) -> Figure:
    """Plot the primary quantity of each segment, in its order, one panel a concurrency."""
    trial = result.trial
    return Figure(
        title=f"{trial.named or 'the same twice'}: every segment",
        panels=tuple(_panel(result, concurrency) for concurrency in trial.ask.concurrency),
        note=_note(result),
    )


def _panel(result: Result, concurrency: int) -> Panel:
    trial = result.trial
    lines = []
    for place, arm in enumerate(trial.arms):
        points = tuple(
            Point(x=segment.place + 1.0, y=median(values), low=min(values), high=max(values))
            for segment in trial.segments
            if segment.arm == place and (values := _runs(segment, concurrency))
        )
        if points:
            lines.append(Line(label=f"{arm.letter} {arm.mode.partition(':')[0]}", points=points, look=Look.MARKS))
    return Panel(
        x_label="segment, in the order of time",
        y_label="tokens a second",
        title=f"{concurrency} at once",
        lines=tuple(lines),
        y_from_zero=False,
    )


def _runs(segment: Segment, concurrency: int) -> list[float]:
    level = segment.level(concurrency)
    return [] if level is None else [run.tokens_s for run in level.runs if run.tokens_s is not None]


def differences(result: Result) -> Figure:
    """Plot the difference of each quantity with its interval, in percent of the base arm, one panel a pair of arms."""
    trial = result.trial
    panels = []
    for base, other in trial.pairs:
        lines = []
        for number, concurrency in enumerate(trial.ask.concurrency):
            shift = (number - (len(trial.ask.concurrency) - 1) / 2) * 0.15
            found = result.analysis.of(concurrency, base, other)
            points = tuple(
                Point(
                    x=place + 1 + shift,
                    y=100 * each.difference.ratio,
                    low=100 * each.difference.low,
                    high=100 * each.difference.high,
                )
                for place, each in enumerate(found)
            )
            if points:
                lines.append(Line(label=f"{concurrency} at once", points=points, look=Look.MARKS))
        keys = [each.key for each in result.analysis.of(trial.ask.concurrency[0], base, other)]
        marks = tuple(Mark(x=place + 1.0, text=quantity(key).short) for place, key in enumerate(keys))
        title = trial.between(base, other) or f"{trial.letters[other]} against {trial.letters[base]}"
        panels.append(Panel(x_label="", y_label="%", title=title, lines=tuple(lines), marks=marks, y_from_zero=False))
    return Figure(title="Differences with their 95 % intervals", panels=tuple(panels), note=_note(result))


def _note(result: Result) -> str:
    trial = result.trial
    sent = f"{quantity(PRIMARY).label}, {trial.ask.tokens} tokens a request"
    return f"{trial.id} · {trial.host} {trial.server} · {trial.began} · {sent}"
