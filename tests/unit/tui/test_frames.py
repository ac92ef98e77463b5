"""Whatever a host says, a frame is drawn: no crash, no markup, nothing that steers the terminal, no 0 for what is unknown."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.text import Text
from textual.pilot import Pilot

from specctl.control.sight import Sight
from specctl.control.sight_events import Event
from specctl.control.sight_past import Past
from specctl.tui import detail, fleet
from specctl.tui.columns import COLUMNS, Row, fitting
from specctl.tui.layout import text
from specctl.tui.lines import strip
from specctl.tui.order import Grouping, Heading, Order, arranged
from specctl.tui.palette import DARK
from specctl.tui.problems import problems_of
from specctl.tui.rowtext import heading_line, row_line, shared, wanted
from specctl.tui.sane import sane
from specctl.ui.text import UNKNOWN
from tests.examples import examples
from tests.unit.tui import hostile, world
from tests.unit.tui.driving import dashboard, drive, screen

WIDTHS = st.integers(min_value=20, max_value=260)
SLOW = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def row_of(sight: Sight, trend: tuple[float | None, ...] = ()) -> Row:
    sight = sane(sight)
    return Row(sight=sight, trend=trend, problems=problems_of(sight))


def past_of(series: tuple[float | None, ...]) -> Past:
    gpus = dict.fromkeys(range(3), series)
    return Past(
        period_s=1.0,
        running=series,
        waiting=series,
        tokens_per_s=series,
        accept_length=series,
        kv_ratio=series,
        gpu_power_w=gpus,
        gpu_busy_ratio=gpus,
    )


def require_drawable(lines: Iterable[Text], width: int) -> None:
    """Require that lines hold no control character, and are as wide as the screen once they are drawn."""
    for line in lines:
        assert line.plain.isprintable(), repr(line.plain)
        drawn = strip(line, width, DARK, DARK.style("default"))
        assert sum(segment.cell_length for segment in drawn) == width


@SLOW
@given(sights=st.lists(hostile.SIGHT, max_size=3), series=hostile.SERIES, width=WIDTHS)
def test_any_table_is_drawn(sights: list[Sight], series: tuple[float | None, ...], width: int) -> None:
    """Every order and grouping of any sights makes lines that fit the screen."""
    rows = [row_of(sight, series) for sight in sights]
    places = fitting(wanted(rows), width)
    for column in COLUMNS:
        for grouping in Grouping:
            order = Order(sort=column.key, falling=True, grouping=grouping, filter="-zz")
            arranged(rows, order)
    lines = arranged(rows, Order(grouping=Grouping.GROUP))
    shown = [
        heading_line(line, width) if isinstance(line, Heading) else row_line(line, places, shared(rows))
        for line in lines
    ]
    require_drawable([*shown, *fleet.lines(rows, width=width, right=text("12:00:00"))], width)


@SLOW
@given(
    sight=hostile.SIGHT,
    series=hostile.SERIES,
    events=st.lists(hostile.EVENT, max_size=3).map(tuple),
    decision=st.none() | st.dictionaries(hostile.TEXT, hostile.TEXT | hostile.FIGURE, max_size=3),
    width=WIDTHS,
    height=st.integers(min_value=10, max_value=60),
)
def test_any_page_is_drawn(
    sight: Sight,
    series: tuple[float | None, ...],
    events: tuple[Event, ...],
    decision: dict[str, object] | None,
    width: int,
    height: int,
) -> None:
    """The page of any server, with any past, events and decision, is lines that fit the screen."""
    told = None if decision is None else {"inputs": decision, "otherwise": "[b]" + "x" * 300, **decision}
    story = detail.Story(row=row_of(sight), past=past_of(series), decision=told, events=events)
    require_drawable(
        [
            detail.head(story.sight, width, text("12:00:00")),
            *detail.page(story, width, height),
            *detail.peek(story, width, height),
        ],
        width,
    )


FIGURES = {
    "run": "running",
    "queue": "waiting",
    "tokens": "tokens_per_s",
    "accept": "accept_length",
    "kv": "kv_ratio",
    "gpu": "gpus",
    "memory": "gpus",
    "power": "gpus",
    "temp": "gpus",
}


@SLOW
@given(sight=hostile.SIGHT)
def test_unknown_is_never_zero(sight: Sight) -> None:
    """A figure that nobody told is — in the table, and blank in the trend; a stale one is dim."""
    row = row_of(sight)
    for column in COLUMNS:
        name = FIGURES.get(column.key)
        if name is not None and getattr(row.sight, name) is None:
            assert column.text(row, column.most) == UNKNOWN
        told = getattr(row.sight, name, None) if name and name != "gpus" else None
        if told is not None and row.sight.running is not None and row.sight.running.stale:
            assert column.style(row) == "quiet"


def test_a_bare_sight_shows_no_figure() -> None:
    """A server of which only the name is known shows no digit at all."""
    row = row_of(Sight(host="a", server="b", state="unknown"))
    places = fitting(wanted([row]), 250)
    line = row_line(row, places, frozenset()).plain
    assert not any(char.isdigit() for char in line), line
    story = detail.Story(row=row, past=Past(period_s=1.0))
    figures = [line.plain for line in detail.page(story, 120, 40) if "│" not in line.plain]
    assert not any(char.isdigit() for line in figures for char in line), figures


@pytest.mark.slow
@settings(max_examples=examples(2), deadline=None, suppress_health_check=list(HealthCheck))
@given(fleets=st.lists(st.lists(hostile.SIGHT, min_size=1, max_size=4), min_size=4, max_size=4))
def test_no_sight_crashes_the_app(fleets: list[list[Sight]]) -> None:
    """The app goes on drawing the table, a server and the events, whatever the feed brings next."""
    feed = world.FakeFeed(shown=tuple(fleets[0]))
    app = dashboard(feed)

    async def show(pilot: Pilot[None]) -> bool:
        for sights in fleets:
            feed.shown = tuple(sights)
            for key in ("enter", "escape", "e", "escape"):
                app.tick()
                await pilot.press(key)
            assert screen(app)
        return app.is_running

    assert drive(app, show, size=(100, 30)) is True
