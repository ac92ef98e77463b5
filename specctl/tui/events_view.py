"""What happened to any server of the fleet, the newest last; goes on as things happen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from specctl.tui import detail, words
from specctl.tui.keybar import Hint, KeyBar
from specctl.tui.layout import rule, text
from specctl.tui.lines import Lines, Page
from specctl.tui.view import View

HINTS: Sequence[Hint] = (
    ("Esc", "back", "screen.back"),
    ("G", "newest", "screen.newest"),
    ("p", "pause", "app.pause"),
    ("?", "help", "app.help"),
    ("q", "quit", "app.leave"),
)


class EventsView(View):
    """The events of all servers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,left,backspace,e", "back", "back", show=False),
    ]
    DEFAULT_CSS = """
    EventsView Lines { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._head = Lines(id="head")
        self._page = Page(id="events", follow=True)
        self._keys = KeyBar(HINTS)

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self._head
        yield self._page
        yield self._keys

    def on_mount(self) -> None:
        """Begin at the newest."""
        self._page.focus()
        self.draw()

    def on_resize(self) -> None:
        """Fit what is drawn to the new size."""
        self.draw()

    def draw(self) -> None:
        """Show the events as they are now."""
        width = max(self.size.width - 3, 1)
        events = self.top.model.feed.events()
        self._head.show([rule(f"{len(events)} events of {len(self.top.model.rows)} servers", width)])
        self._keys.lead(self.top.status_text())
        hosts = min(max((cell_len(words.one_line(event.host)) for event in events), default=0), width // 3)
        lines = [detail.event_line(event, width, hosts) for event in events]
        self._page.show(lines or [text(" nothing since this watch began", "quiet")])

    def action_newest(self) -> None:
        """Go to the end, and stay there."""
        self._page.scroll_end(animate=False)

    def action_back(self) -> None:
        """Go back."""
        self.top.back()
