"""Each key does what the help says of it."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from specctl.tui.app import Top
from specctl.tui.events_view import EventsView
from specctl.tui.help_view import HelpView
from specctl.tui.order import Grouping, Order
from specctl.tui.palette import DARK, LIGHT, PLAIN
from specctl.tui.server_view import ServerView
from tests.unit.tui import world
from tests.unit.tui.driving import dashboard, drive, press, screen, seen, settled

pytestmark = pytest.mark.slow

HOSTS = ("b300-1", "b300-2", "ct200", "ct201", "ct202", "lab-3")


MOVES = (
    ("down", "b300-2"),
    ("j", "ct200"),
    ("k", "b300-2"),
    ("up", "b300-1"),
    ("up", "b300-1"),
    ("G", "lab-3"),
    ("down", "lab-3"),
    ("g", "b300-1"),
    ("end", "lab-3"),
    ("home", "b300-1"),
)


def under(app: Top) -> str:
    """Return the host under the cursor."""
    row = app.fleet.table.cursor
    return row.sight.host if row else ""


def test_the_cursor_moves() -> None:
    """Arrows, j, k, g, G, Home and End put the cursor where they say, and never off the table."""
    app = dashboard()

    async def move(pilot: Pilot[None]) -> list[tuple[str, str]]:
        found = []
        for key, _ in MOVES:
            await pilot.press(key)
            found.append((key, under(app)))
        return found

    assert drive(app, move) == list(MOVES)


def test_pages_move_by_a_screen() -> None:
    """PgDn goes a screen down, PgUp the same way back, and each row between was seen."""
    app = dashboard(world.FakeFeed(shown=tuple(world.many(200))))

    async def move(pilot: Pilot[None]) -> tuple[list[str], int]:
        found = []
        for key in ("pagedown", "pagedown", "pageup", "pageup"):
            await pilot.press(key)
            found.append(under(app))
        return found, app.fleet.table.size.height - 2

    (first, second, third, fourth), rows = drive(app, move)
    assert (int(first[3:]), int(second[3:]), third, fourth) == (rows, 2 * rows, first, "gpu000")


ORDERS = (
    ("s", Order(sort="server")),
    ("greater_than_sign", Order(sort="algo")),
    ("less_than_sign", Order(sort="server")),
    ("S", Order(sort="server", falling=True)),
    ("b", Order(sort="server", falling=True, grouping=Grouping.GROUP)),
    ("b", Order(sort="server", falling=True, grouping=Grouping.STATE)),
    ("b", Order(sort="server", falling=True, grouping=Grouping.ALGO)),
    ("b", Order(sort="server", falling=True, grouping=Grouping.HOST)),
    ("b", Order(sort="server", falling=True)),
    ("slash", Order(sort="server", falling=True)),
    ("s", Order(sort="server", falling=True, filter="s")),
    ("q", Order(sort="server", falling=True, filter="sq")),
    ("enter", Order(sort="server", falling=True, filter="sq")),
    ("escape", Order(sort="server", falling=True)),
)


def test_the_table_is_arranged() -> None:
    """s, <, > and S sort, b groups, / filters while keys that do other things elsewhere are words, Esc forgets it."""
    app = dashboard()

    async def arrange(pilot: Pilot[None]) -> list[tuple[str, Order]]:
        found = []
        for key, _ in ORDERS:
            await pilot.press(key)
            await pilot.pause()
            found.append((key, app.fleet.table.order))
        return found

    assert drive(app, arrange) == list(ORDERS)


def test_a_fast_typist_is_understood() -> None:
    """Keys that come in one go with the / are words to look for, and pause or quit nothing."""
    app = dashboard()

    async def type_fast(pilot: Pilot[None]) -> tuple[str, bool]:
        for key, char in (("slash", "/"), ("p", "p"), ("slash", "/"), ("q", "q")):
            app.post_message(events.Key(key, char))
        await settled(pilot)
        return app.fleet.table.order.filter, app.is_running and app.paused_at is None

    assert drive(app, type_fast) == ("p/q", True)


def test_figures_fall_first() -> None:
    """A column of figures sorts from the largest down, since that is what a person looks for."""
    app = dashboard()

    async def look(_pilot: Pilot[None]) -> tuple[Order, str]:
        app.fleet.table.sort_by("tokens")
        await settled(_pilot)
        return app.fleet.table.order, screen(app)

    order, shown = drive(app, look)
    assert order == Order(sort="tokens", falling=True)
    assert "TOK/S▼" in shown
    listed = [host for line in shown.splitlines()[4:10] for host in HOSTS if f" {host} " in line]
    assert listed == ["b300-1", "b300-2", "ct202", "ct200", "ct201", "lab-3"]


def test_a_click_on_a_heading_sorts_and_on_a_row_chooses() -> None:
    """The mouse does what keys do: a heading sorts, again reverses; a row takes the cursor, a second click opens it."""
    app = dashboard()

    async def click(pilot: Pilot[None]) -> tuple[Order, Order, str, bool]:
        table = app.fleet.table
        place = next(place for place in table.places if place.column.key == "queue")
        await pilot.click(table, offset=(1 + place.start, 0))
        first = table.order
        await pilot.click(table, offset=(1 + place.start, 0))
        second = table.order
        await pilot.click(table, offset=(4, 3))
        row = table.cursor
        await pilot.click(table, offset=(4, 3), times=2)
        await settled(pilot)
        return first, second, row.sight.host if row else "", isinstance(app.screen, ServerView)

    first, second, host, opened = drive(app, click)
    assert (first, second) == (Order(sort="queue", falling=True), Order(sort="queue", falling=False))
    assert (host in HOSTS, opened) == (True, True)


def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    """The wheel looks elsewhere; the server under the cursor stays the one."""
    app = dashboard(world.FakeFeed(shown=tuple(world.many(200))))

    async def scroll(pilot: Pilot[None]) -> tuple[int, str]:
        app.fleet.table.scroll_to(y=50, animate=False)
        await pilot.pause()
        app.tick()
        await pilot.pause()
        return app.fleet.table.scroll_offset.y, under(app)

    assert drive(app, scroll) == (50, "gpu000")


def test_enter_shows_a_server_and_escape_goes_back() -> None:
    """Enter opens what is under the cursor, Esc goes back to it, and n and N step through the table's order."""
    app = dashboard()

    async def steps(pilot: Pilot[None]) -> list[str]:
        found = []
        for key in ("enter", "n", "n", "N", "escape"):
            await press(pilot, key)
            view = app.screen
            row = app.fleet.table.cursor
            found.append(view.key[0] if isinstance(view, ServerView) else f"table at {row.sight.host if row else ''}")
        return found

    assert drive(app, steps, keys=("down",)) == ["b300-2", "ct200", "ct201", "ct200", "table at ct200"]


PAGES = (
    ("2", "decisions", "not-worth-it"),
    ("3", "events", "acts on record"),
    ("4", "log", "Decode batch"),
    ("1", "now", "requests  3 running"),
    ("tab", "decisions", "not-worth-it"),
    ("shift+tab", "now", "8 GPUs"),
    ("e", "events", "hold: gain 1.2 of 9.6 needed"),
    ("l", "log", "Decode batch"),
)


def test_a_server_has_pages() -> None:
    """Digits, Tab, e and l show a server's pages, each with its own content."""
    app = dashboard(open_at="ct200")

    async def turn(pilot: Pilot[None]) -> list[tuple[str, str, str]]:
        found = []
        for key, _, words in PAGES:
            await press(pilot, key)
            view = app.screen
            assert isinstance(view, ServerView)
            found.append((key, view.tab, words if words in screen(app) else screen(app)))
        return found

    assert drive(app, turn) == list(PAGES)


def test_the_log_begins_at_its_end_and_stays_where_it_is_scrolled_to() -> None:
    """A log is followed while nobody scrolls it, and left alone once somebody does."""
    app = dashboard(open_at="ct200")

    async def read(pilot: Pilot[None]) -> tuple[bool, int]:
        view = app.screen
        assert isinstance(view, ServerView)
        page = view.query_one("#page-log")
        at_end = page.scroll_offset.y == page.max_scroll_y
        await press(pilot, "g")
        app.tick()
        await settled(pilot)
        return at_end, page.scroll_offset.y

    assert drive(app, read, keys=("4",)) == (True, 0)


def test_l_and_e_in_the_table() -> None:
    """With l the log of the server under the cursor opens, with e the events of all."""
    log, events = dashboard(), dashboard()

    async def opened(_pilot: Pilot[None]) -> str:
        view = log.screen
        return f"{view.key[0]} {view.tab}" if isinstance(view, ServerView) else ""

    assert drive(log, opened, keys=("down", "down", "l")) == "ct200 log"

    async def listed(_pilot: Pilot[None]) -> tuple[bool, bool]:
        return isinstance(events.screen, EventsView), "GPU 7 is slowed" in screen(events)

    assert drive(events, listed, keys=("e",)) == (True, True)


def test_pause_stands_still_and_goes_on() -> None:
    """While paused the screen keeps its figures though others come, says since when, and the next p shows the newest."""
    feed = world.FakeFeed()
    app = dashboard(feed)

    async def pause(pilot: Pilot[None]) -> tuple[str, str]:
        await press(pilot, "p")
        feed.shown = (world.ready("ct200", tokens_per_s=world.told(999.5)),)
        app.tick()
        await pilot.pause()
        still = screen(app)
        await press(pilot, "p")
        return still, screen(app)

    still, after = drive(app, pause)
    assert ("318.2" in still, "paused at 14:02:11" in still, "999.5" in after, "paused" in after) == (
        True,
        True,
        True,
        False,
    )


def test_r_asks_again() -> None:
    """With r it looks at the feed at once and asks the host anew for what the page shows."""
    feed = world.FakeFeed()
    app = dashboard(feed, open_at="ct200")

    async def ask(pilot: Pilot[None]) -> tuple[int, int]:
        before = len(feed.asked)
        await press(pilot, "r")
        return before, len(feed.asked)

    before, after = drive(app, ask, keys=("4",))
    assert after > before


def test_t_turns_the_light_on_and_off() -> None:
    """Each t goes from dark to light and back."""
    app = dashboard()

    async def look(pilot: Pilot[None]) -> tuple[str, str, str]:
        first = app.palette
        await press(pilot, "t")
        second = app.palette
        await press(pilot, "t")
        return first.theme, second.theme, app.palette.theme

    assert drive(app, look) == (DARK.theme, LIGHT.theme, DARK.theme)


def test_t_says_so_where_there_is_no_colour() -> None:
    """Without colour t changes nothing and says why."""
    app = dashboard(palette=PLAIN)
    shown = seen(app, "t")
    assert (app.palette is PLAIN, "NO_COLOR" in shown) == (True, True)


def test_help_opens_and_closes() -> None:
    """? shows the keys over whatever is shown; Esc, q and ? close it without more."""
    for closing in ("escape", "q", "question_mark"):
        app = dashboard()

        async def look(pilot: Pilot[None], app: Top = app, closing: str = closing) -> tuple[bool, bool, bool]:
            await press(pilot, "question_mark")
            shown = isinstance(app.screen, HelpView)
            await press(pilot, closing)
            return shown, app.screen is app.fleet, app.is_running

        assert drive(app, look) == (True, True, True)


@pytest.mark.parametrize(
    ("key", "before"), [("q", ()), ("ctrl+c", ("enter",)), ("ctrl+q", ("e",)), ("ctrl+c", ("question_mark",))]
)
def test_quits_from_everywhere(key: str, before: tuple[str, ...]) -> None:
    """q, Ctrl-C and Ctrl-Q leave, from the table, a server and the events, Ctrl-C also over a dialog."""
    app = dashboard()

    async def leave(pilot: Pilot[None]) -> bool:
        await pilot.press(key)
        await pilot.pause()
        return app.is_running

    assert drive(app, leave, keys=before) is False


def test_v_shows_and_hides_the_server_in_short() -> None:
    """With v one shows the server under the cursor below the table where the screen is low, and hides it where it is high."""
    assert "Enter shows all" not in seen(dashboard(), size=(80, 24))
    assert "Enter shows all" in seen(dashboard(), "v", size=(80, 24))
    assert "Enter shows all" not in seen(dashboard(), "v", size=(130, 44))


def test_the_key_bar_can_be_clicked() -> None:
    """What the foot of the screen offers, the mouse can press."""
    app = dashboard()

    async def click(pilot: Pilot[None]) -> bool:
        foot = screen(app).splitlines()[-1]
        await pilot.click(offset=(foot.index("? help"), app.size.height - 1))
        await pilot.pause()
        return isinstance(app.screen, HelpView)

    assert drive(app, click) is True


def test_the_cursor_stays_on_its_server() -> None:
    """New figures, another order and fewer servers leave the cursor on its server, or next to where that was."""
    feed = world.FakeFeed()
    app = dashboard(feed)

    async def change(pilot: Pilot[None]) -> list[str]:
        found = []

        def note() -> None:
            found.append(under(app))

        feed.shown = tuple(reversed(feed.shown))
        app.tick()
        note()
        await press(pilot, "S")
        note()
        feed.shown = tuple(sight for sight in feed.shown if sight.host != "ct200")
        app.tick()
        note()
        return found

    assert drive(app, change, keys=("down", "down")) == ["ct200", "ct200", "b300-2"]
