"""A simulation as a figure: concurrency over time, and under it what each policy served with, one band a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specctl.control.mode import Mode
from specctl.control.replay.compare import Comparison, Row
from specctl.control.replay.compare import Span as Served
from specctl.control.replay.load import Series
from specctl.measure.figure import Band, Figure, Line, Look, Panel, Point, Span

AWAY = "switching"
CONCURRENCY = "requests at the server"
COLUMNS = 760
"""Stretches of time that are told apart: about as many as a drawing has pixels across."""
UNITS = ((2 * 3600.0, 60.0, "minutes"), (2 * 86_400.0, 3600.0, "hours"))
"""Spans up to so many seconds are told in that unit; longer ones in days."""


def figure(found: Comparison, shown: Sequence[Row], *, title: str) -> Figure:
    """Return the figure; the first line of `title` heads it. A static mode needs no band."""
    span_s = found.series.span_s
    unit_s, unit = next(((size, name) for limit, size, name in UNITS if span_s <= limit), (86_400.0, "days"))
    head, _, rest = title.partition("\n")
    top = Panel(x_label="", y_label=CONCURRENCY, title=rest, lines=(_concurrency(found.series, unit_s),))
    banded = [row for row in shown if row.mode is None]
    bands = tuple(Band(name=row.name, spans=tuple(_dominant(row.spans, span_s, unit_s))) for row in banded if row.spans)
    below = (Panel(x_label=unit, bands=bands),) if bands else ()
    return Figure(title=head, panels=(top, *below) if bands else (_named(top, unit),))


def _named(panel: Panel, x_label: str) -> Panel:
    return Panel(x_label=x_label, y_label=panel.y_label, title=panel.title, lines=panel.lines)


def _concurrency(series: Series, unit_s: float) -> Line:
    """Return the means of as many columns as are told apart, or steps where those are fewer; low and high are their range."""
    count = min(COLUMNS, len(series.levels))
    apart = series.span_s / unit_s / max(1, count - 1)  # The first is drawn where time begins, the last where it ends.
    points = []
    for column in range(count):
        part = series.levels[column * len(series.levels) // count : (column + 1) * len(series.levels) // count]
        points.append(Point(x=column * apart, y=sum(part) / len(part), low=min(part), high=max(part)))
    return Line(label=CONCURRENCY, points=tuple(points), look=Look.PLAIN)


def _dominant(spans: Sequence[Served], span_s: float, unit_s: float) -> Iterator[Span]:
    """Yield stretches in which each column has the mode that most of its time went to."""
    spent: list[dict[Mode | None, float]] = [{} for _ in range(COLUMNS)]
    for begin, end, mode in spans:
        first, last = (COLUMNS * min(moment, span_s) / span_s for moment in (begin, end))
        for column in range(int(first), min(COLUMNS, int(last) + 1)):
            part = min(last, column + 1) - max(first, column)
            spent[column][mode] = spent[column].get(mode, 0.0) + part
    before: Mode | None = None
    since = 0
    apart = span_s / unit_s / COLUMNS
    for column, parts in enumerate(spent):
        mode = max(parts, key=lambda each: parts[each]) if parts else before
        if column and mode != before:
            yield _span(since * apart, column * apart, before)
            since = column
        before = mode
    yield _span(since * apart, COLUMNS * apart, before)


def _span(start: float, end: float, mode: Mode | None) -> Span:
    return Span(start=start, end=end, label=AWAY if mode is None else str(mode))
