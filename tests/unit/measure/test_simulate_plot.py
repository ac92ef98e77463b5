"""The figure of a simulation: its bands where the modes were, and the load over them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.objective import Objective
from specctl.control.replay import compare, ours
from specctl.control.replay.compare import Row, Setting
from specctl.control.replay.load import Series
from specctl.control.replay.outage import Outage
from specctl.measure import simulate_plot as plot
from specctl.measure.figure import Figure
from tests.unit.control.replay.loads import CHAIN, NONE, SERVICE, TREE

SETTING = Setting(service=SERVICE, objective=Objective(), outage=Outage(seconds=5.0, drains=True), start=TREE)


def drawn(levels: list[float], *rows: Row, step_s: float = 1.0, title: str = "title") -> Figure:
    """Return the figure of rows over a series."""
    series = Series(step_s=step_s, levels=levels)
    found = compare.compare(SETTING, series, ours.maker, compare.statics(SETTING, series))
    shown = [replace(found.rows[-1], policy=row.policy, spans=row.spans) for row in rows] or found.rows
    return plot.figure(found, shown, title=title)


def row(*spans: compare.Span) -> Row:
    """Return a row of a policy that did that."""
    series = Series(step_s=1.0, levels=[1])
    return replace(compare.statics(SETTING, series)[0], policy="mine", mode=None, spans=spans)


def test_bands_are_where_the_modes_were() -> None:
    """Half of the time in one mode, an eighth away, the rest in another: so is the band."""
    found = drawn([1] * 80, row((0.0, 40.0, TREE), (40.0, 50.0, None), (50.0, 80.0, NONE)))
    (band,) = found.panels[1].bands
    seconds = [(round(span.start * 60, 6), round(span.end * 60, 6), span.label) for span in band.spans]
    assert seconds == [(0.0, 40.0, str(TREE)), (40.0, 50.0, plot.AWAY), (50.0, 80.0, str(NONE))]


def test_a_column_has_the_mode_that_it_mostly_was() -> None:
    """Where more happens than a drawing can show, each stretch shows what most of its time went to."""
    spans = [span for at in range(0, 7600, 10) for span in ((at, at + 9.0, TREE), (at + 9.0, at + 10.0, CHAIN))]
    found = drawn([1] * 7600, row(*((float(begin), end, mode) for begin, end, mode in spans)))
    (band,) = found.panels[1].bands
    assert [(span.start, round(span.end * 3600, 6), span.label) for span in band.spans] == [(0.0, 7600.0, str(TREE))]


def test_static_modes_have_no_band() -> None:
    """A mode that never changes tells nothing over time; policies that decide have a band each."""
    found = drawn([1, 4, 8] * 100)
    assert [band.name for band in found.panels[1].bands] == ["threshold", "hysteresis", "agent", "clairvoyant"]


def test_only_static_modes_leave_the_load_alone() -> None:
    """Without a policy that decides, the load stands alone, its axis named."""
    series = Series(step_s=1.0, levels=[1.0] * 60)
    fixed = compare.statics(SETTING, series)
    found = compare.compare(SETTING, series, ours.maker, fixed)
    (panel,) = plot.figure(found, fixed, title="t").panels
    assert panel.x_label == "minutes"


@pytest.mark.parametrize(
    ("span_s", "unit", "last"),
    [(30, "minutes", 0.5), (3600, "minutes", 60.0), (86_400, "hours", 24.0), (14 * 86_400, "days", 14.0)],
)
def test_time_is_told_in_units_that_fit(span_s: int, unit: str, last: float) -> None:
    """Up to two hours in minutes, up to two days in hours, then in days."""
    step = max(1, span_s // 2000)
    found = drawn([1.0] * (span_s // step), step_s=float(step))
    assert found.panels[1].x_label == unit
    assert found.panels[1].bands[0].spans[-1].end == pytest.approx(last, rel=0.01)


def test_a_column_of_the_load_has_its_range() -> None:
    """Where steps are more than columns, each has the mean of its steps, the lowest and the highest."""
    (line,) = drawn([0.0, 2.0, 4.0, 10.0] * plot.COLUMNS).panels[0].lines
    assert len(line.points) == plot.COLUMNS
    assert {(point.low, point.y, point.high) for point in line.points} == {(0.0, 4.0, 10.0)}


def test_a_title_of_two_lines_heads_figure_and_panel() -> None:
    """What was replayed heads the figure, the terms head the panel of the load."""
    found = drawn([0.0, 0.0], title="first\nsecond")
    assert (found.title, found.panels[0].title) == ("first", "second")
