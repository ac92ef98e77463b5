"""The first screen: the fleet in three lines, the table of servers, the one under the cursor in short, the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from specctl.tui import detail, fleet, words
from specctl.tui.keybar import Hint, KeyBar
from specctl.tui.lines import Lines
from specctl.tui.model import Key
from specctl.tui.order import Grouping
from specctl.tui.table import ServerTable
from specctl.tui.view import View

PEEK_FROM = 32
PEEK_HEIGHT = 10
FRAME = 6
HINTS: Sequence[Hint] = (
    ("Enter", "detail", "screen.detail"),
    ("/", "filter", "screen.filter"),
    ("s", "sort", "screen.sort"),
    ("?", "help", "app.help"),
    ("q", "quit", "app.leave"),
    ("b", "group", "screen.group"),
    ("e", "events", "app.events"),
    ("l", "log", "screen.log"),
    ("a", "act", "screen.act"),
    ("p", "pause", "app.pause"),
    ("t", "theme", "app.light_or_dark"),
)


class FilterInput(Input):
    """Takes the words to look for; Esc forgets them, Enter keeps them."""

    DEFAULT_CSS = """
    FilterInput, FilterInput:focus { dock: bottom; height: 1; border: none; padding: 0 1; }
    """


class FleetView(View):
    """The fleet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # First of all who take keys: what is typed right behind it must find the field open.
        Binding("slash", "filter", "filter", show=False, priority=True),
        Binding("escape", "clear", "clear the filter", show=False),
        Binding("l", "log", "log", show=False),
        Binding("a", "act", "act", show=False),
        Binding("v", "peek", "peek", show=False),
        Binding("e", "events", "events", show=False),
    ]
    DEFAULT_CSS = """
    FleetView Lines { padding: 0 1; }
    #peek { display: none; }
    #peek.shown { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._fleet = Lines(id="fleet")
        self.table = ServerTable(id="servers")
        self._peek = Lines(id="peek")
        self._keys = KeyBar(HINTS)
        self._asking = FilterInput(placeholder="words to look for; -word: without; !: with problems", id="filter")
        self._peeking: bool | None = None

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self._fleet
        yield self.table
        yield self._peek
        yield self._asking
        yield self._keys

    def on_mount(self) -> None:
        """Begin with the table."""
        self._asking.display = False
        self.table.focus()
        self.draw()

    def on_resize(self) -> None:
        """Fit what is drawn to the new size."""
        self.draw()

    def draw(self) -> None:
        """Show the model as it is now."""
        rows = self.top.model.rows
        width = max(self.size.width - 2, 1)
        self._fleet.show(fleet.lines(rows, width=width, right=self.top.clock_text()))
        self.table.show(rows)
        self._draw_peek(width)
        self._keys.lead(self._lead())

    def _draw_peek(self, width: int) -> None:
        row = self.table.cursor
        # What the table leaves free is the peek's; it takes no more than a third where there are many servers.
        free = self.size.height - FRAME - len(self.top.model.rows)
        height = max(min(PEEK_HEIGHT, self.size.height // 3), free)
        wanted = self.size.height >= PEEK_FROM if self._peeking is None else self._peeking
        shown = wanted and row is not None and self.size.height >= 16
        self._peek.set_class(shown, "shown")
        if row is not None and shown:
            self._peek.show(detail.peek(self.top.story(row), width, height))

    def _lead(self) -> Text:
        """Say what the table is narrowed to, and how it is grouped."""
        order, line = self.table.order, self.top.status_text()
        parts = []
        if order.filter.strip():
            parts.append(f"/{order.filter.strip()}  {self.table.count} of {len(self.top.model.rows)}, Esc clears")
        if order.grouping is not Grouping.NONE:
            parts.append(f"by {order.grouping.value}")
        for part in parts:
            line.append(" " if line.plain else "").append(f" {words.one_line(part)} ", style="marked")
        return line

    def on_server_table_moved(self) -> None:
        """Show the other server in short."""
        self._draw_peek(max(self.size.width - 2, 1))

    def on_server_table_arranged(self) -> None:
        """Say how the table is narrowed and grouped."""
        self._keys.lead(self._lead())

    def on_server_table_chosen(self) -> None:
        """Show a server in detail."""
        self.action_detail()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the table while a person types."""
        self.table.order = replace(self.table.order, filter=event.value)

    def on_input_submitted(self) -> None:
        """Keep the filter and go back to the table."""
        self._close_filter()

    def _close_filter(self) -> None:
        self.set_focus(self.table)
        self._asking.display = False
        self.draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let a / that is typed into a field be a letter."""
        del parameters
        return action != "filter" or not isinstance(self.focused, Input)

    def action_filter(self) -> None:
        """Ask for words to look for; the very next key is one of them, however fast it comes."""
        self._asking.display = True
        self.set_focus(self._asking)

    def action_clear(self) -> None:
        """Forget the filter."""
        self._asking.value = ""
        self._close_filter()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.table.action_sort(1)

    def action_group(self) -> None:
        """Group by the next thing."""
        self.table.action_group()

    def action_peek(self) -> None:
        """Show or hide the server under the cursor in short."""
        self._peeking = not self._peek.has_class("shown")
        self.draw()

    def action_detail(self) -> None:
        """Show the server under the cursor in detail."""
        if self.table.cursor is not None:
            self.top.open_server(self.table.cursor.key)

    def action_log(self) -> None:
        """Show the log of the server under the cursor."""
        if self.table.cursor is not None:
            self.top.open_server(self.table.cursor.key, "log")

    def action_events(self) -> None:
        """Show what happened anywhere."""
        self.top.action_events()

    def action_act(self) -> None:
        """Ask what to do with the server under the cursor."""
        self.top.act_on(self.table.cursor)

    def neighbour(self, key: Key, by: int) -> Key | None:
        """Return the server that stands so many after another in the table; None where there is no other."""
        return self.table.neighbour(key, by)
