"""The table of servers: a heading that stays, rows that scroll under it, a cursor that stays on its server; draws what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from specctl.tui.columns import BY_KEY, Place, Row, fitting
from specctl.tui.lines import palette_of, strip
from specctl.tui.model import Key
from specctl.tui.order import Grouping, Heading, Order, arranged
from specctl.tui.rowtext import column_at, heading_line, row_line, shared, title_line, wanted


class ServerTable(ScrollView, can_focus=True):
    """Shows rows in an order; tells when the cursor moves to another server, and when one is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("home,g", "end(-1)", "first", show=False),
        Binding("end,G", "end(1)", "last", show=False),
        Binding("enter,right", "choose", "detail", show=False),
        Binding("s,greater_than_sign", "sort(1)", "sort by the next column", show=False),
        Binding("less_than_sign", "sort(-1)", "sort by the column before", show=False),
        Binding("S,I", "reverse", "reverse the order", show=False),
        Binding("b", "group", "group by", show=False),
    ]
    DEFAULT_CSS = """
    ServerTable { height: 1fr; padding: 0 1; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    order: reactive[Order] = reactive(Order(), init=False)

    class Moved(Message):
        """The cursor is on another server, or on none."""

    class Arranged(Message):
        """The rows stand in another order, or others are shown."""

    class Chosen(Message):
        """A server is to be shown in detail."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's own word
        super().__init__(id=id)
        self._rows: tuple[Row, ...] = ()
        self._lines: tuple[Row | Heading, ...] = ()
        self._cursor: Key | None = None
        self._place = 0
        self._wanted: dict[str, int] = {}
        self._places: tuple[Place, ...] = ()
        self._several: frozenset[str] = frozenset()
        self._drawn: dict[int, Text] = {}
        self._width = 0

    @property
    def cursor(self) -> Row | None:
        """Return the row under the cursor."""
        found = self._lines[self._place] if 0 <= self._place < len(self._lines) else None
        return found if isinstance(found, Row) else None

    @property
    def count(self) -> int:
        """Return how many servers are shown."""
        return sum(isinstance(line, Row) for line in self._lines)

    @property
    def room(self) -> int:
        """Return the cells of a line: what a scroll bar leaves."""
        return self.scrollable_content_region.width

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the columns as they stand on the screen."""
        return self._places

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows; the cursor stays on its server, and lines that look as before are not drawn again."""
        self._rows = tuple(rows)
        self._several = shared(rows)
        self._arrange()

    def watch_order(self) -> None:
        """Arrange anew when a person asks for another order."""
        self._arrange()
        self._reveal()
        self.refresh_line(self.scroll_offset.y)
        self.post_message(self.Arranged())

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        self._arrange()

    def _arrange(self) -> None:
        count = len(self._lines)
        self._lines = arranged(self._rows, self.order)
        self._settle()
        moved = self._lay_out()
        if len(self._lines) != count:
            self.virtual_size = Size(self.size.width, len(self._lines) + 1)
        if moved or len(self._lines) != count:
            self._drawn.clear()
            self.refresh()
            return
        for place in self._seen():
            if self._drawn.get(place) != (text := self._text(place)):
                self._drawn[place] = text
                self.refresh_line(place + 1)

    def _seen(self) -> range:
        """Return the places of the lines that are on the screen."""
        top = self.scroll_offset.y
        return range(top, min(top + max(self.size.height - 1, 0), len(self._lines)))

    def _lay_out(self) -> bool:
        """Fit the columns; they grow with what they show and do not shrink, so that nothing dances. Says whether any moved."""
        for key, width in wanted(self._rows).items():
            self._wanted[key] = max(width, self._wanted.get(key, 0))
        if self._several:
            widest = max((len(row.sight.host) + len(row.sight.server) + 1 for row in self._rows), default=0)
            self._wanted["host"] = max(self._wanted["host"], min(widest, BY_KEY["host"].most))
        self._width = self.room
        before, self._places = self._places, fitting(self._wanted, self._width)
        return before != self._places

    def _settle(self) -> None:
        """Keep the cursor on its server; where that is gone, on what is nearest to where it was."""
        keys = [line.key if isinstance(line, Row) else None for line in self._lines]
        if self._cursor is not None and self._cursor in keys:
            self._place = keys.index(self._cursor)
            return
        there = [place for place, key in enumerate(keys) if key is not None]
        self._place = min(there, key=lambda place: abs(place - self._place), default=0)
        self._hold()

    def _hold(self) -> None:
        row = self.cursor
        key = row.key if row else None
        if key != self._cursor:
            self._cursor = key
            self.post_message(self.Moved())

    def _text(self, place: int) -> Text:
        line = self._lines[place]
        if isinstance(line, Heading):
            return heading_line(line, self.room)
        return row_line(line, self._places, self._several)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen: the heading, a server, or nothing."""
        palette, base, width = palette_of(self.app), self.rich_style, self.room
        if width != self._width:  # a scroll bar came or went
            self._lay_out()
            self._drawn.clear()
        if y == 0:
            return strip(title_line(self._places, self.order), width, palette, base, palette.style("heading"))
        place = y - 1 + self.scroll_offset.y
        if not 0 <= place < len(self._lines):
            return Strip.blank(width, base)
        text = self._drawn.get(place)
        if text is None:
            text = self._drawn[place] = self._text(place)
        over = palette.style("cursor") if place == self._place and self.cursor is not None else None
        return strip(text, width, palette, base, over)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Forget what is off the screen."""
        super().watch_scroll_y(old_value, new_value)
        seen = self._seen()
        self._drawn = {place: text for place, text in self._drawn.items() if place in seen}

    def put_cursor(self, place: int) -> None:
        """Put the cursor on the server nearest to a line of the table."""
        there = [at for at, line in enumerate(self._lines) if isinstance(line, Row)]
        if not there:
            return
        before, self._place = self._place, min(there, key=lambda at: (abs(at - place), at))
        self.refresh_line(before + 1)
        self.refresh_line(self._place + 1)
        self._hold()
        self._reveal()

    def seek(self, key: Key) -> None:
        """Put the cursor on a server, if it is shown."""
        for place, line in enumerate(self._lines):
            if isinstance(line, Row) and line.key == key:
                self.put_cursor(place)

    def neighbour(self, key: Key, by: int) -> Key | None:
        """Return the key of the server that stands so many lines after another, round the end; None where there is none."""
        keys = [line.key for line in self._lines if isinstance(line, Row)]
        return keys[(keys.index(key) + by) % len(keys)] if key in keys else None

    def _reveal(self) -> None:
        """Scroll as little as brings the cursor onto the screen."""
        height = max(self.size.height - 1, 1)
        top = self.scroll_offset.y
        # A heading right over the first server of its group is worth its line.
        first = self._place - 1 if self._place and isinstance(self._lines[self._place - 1], Heading) else self._place
        if first < top:
            self.scroll_to(y=first, animate=False)
        elif self._place >= top + height:
            self.scroll_to(y=self._place - height + 1, animate=False)

    def action_move(self, by: int) -> None:
        """Move the cursor by so many servers."""
        there = [at for at, line in enumerate(self._lines) if isinstance(line, Row)]
        if there:
            now = there.index(self._place) if self._place in there else 0
            self.put_cursor(there[min(max(now + by, 0), len(there) - 1)])

    def action_page(self, by: int) -> None:
        """Move the cursor by a screen."""
        self.action_move(by * max(self.size.height - 2, 1))

    def action_end(self, by: int) -> None:
        """Move the cursor to the first or the last server."""
        self.action_move(by * len(self._lines))

    def action_choose(self) -> None:
        """Show the server under the cursor in detail."""
        if self.cursor is not None:
            self.post_message(self.Chosen())

    def action_sort(self, by: int) -> None:
        """Sort by another of the columns on the screen."""
        keys = [place.column.key for place in self._places]
        now = keys.index(self.order.sort) if self.order.sort in keys else -1
        self.sort_by(keys[(now + by) % len(keys)])

    def sort_by(self, key: str) -> None:
        """Sort by a column, figures falling; by the column that it is sorted by already, the other way round."""
        if key == self.order.sort:
            self.action_reverse()
        else:
            self.order = replace(self.order, sort=key, falling=BY_KEY[key].falling)

    def action_reverse(self) -> None:
        """Turn the order round."""
        self.order = replace(self.order, falling=not self.order.falling)

    def action_group(self) -> None:
        """Group by the next thing that servers can have in common."""
        each = list(Grouping)
        self.order = replace(self.order, grouping=each[(each.index(self.order.grouping) + 1) % len(each)])

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose heading is clicked; put the cursor on a row, and show it in detail on a second click."""
        at = event.get_content_offset(self)
        if at is None:
            return
        if at.y == 0:
            key = column_at(self._places, at.x)
            if key is not None:
                self.sort_by(key)
            return
        place = at.y - 1 + self.scroll_offset.y
        if not 0 <= place < len(self._lines) or not isinstance(self._lines[place], Row):
            return
        if event.chain > 1 and place == self._place:
            self.action_choose()
        self.put_cursor(place)
