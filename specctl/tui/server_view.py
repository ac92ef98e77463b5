"""One server on a whole screen: its page, its decisions, its events, its log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from specctl.tui import detail, words
from specctl.tui.keybar import Hint, KeyBar
from specctl.tui.layout import folded, labelled, rule, text
from specctl.tui.lines import Lines, Page
from specctl.tui.model import Key, Reply
from specctl.tui.view import View
from specctl.ui import agent as agents
from specctl.ui import history as records

TABS = ("now", "decisions", "events", "log")
LIMITS = {"decisions": 50, "records": 100, "lines": 400}
# What each tab asks the host for, and after how many looks again.
ASKS = {"now": ("decisions", 5), "decisions": ("decisions", 5), "events": ("records", 5), "log": ("lines", 2)}
HINTS: Sequence[Hint] = (
    ("Esc", "back", "screen.back"),
    ("Tab", "next page", "screen.next(1)"),
    ("?", "help", "app.help"),
    ("q", "quit", "app.leave"),
    ("n/N", "next server", "screen.other(1)"),
    ("a", "act", "screen.act"),
    ("l", "log", "screen.tab('log')"),
    ("e", "events", "screen.tab('events')"),
    ("p", "pause", "app.pause"),
    ("r", "refresh", "app.refresh_now"),
    ("t", "theme", "app.light_or_dark"),
)


class ServerView(View):
    """One server; `tab` is the page to begin with."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,left,backspace", "back", "back", show=False),
        Binding("tab,right", "next(1)", "next page", show=False),
        Binding("shift+tab", "next(-1)", "page before", show=False),
        *(Binding(str(number), f"tab('{name}')", name, show=False) for number, name in enumerate(TABS, 1)),
        Binding("e", "tab('events')", "events", show=False),
        Binding("l", "tab('log')", "log", show=False),
        Binding("n,J", "other(1)", "next server", show=False),
        Binding("N,K", "other(-1)", "server before", show=False),
        Binding("a", "act", "act", show=False),
    ]
    DEFAULT_CSS = """
    ServerView Lines { padding: 0 1; }
    """

    def __init__(self, key: Key, tab: str = "now") -> None:
        super().__init__()
        self.key = key
        self.tab = tab
        self._head = Lines(id="head")
        self._pages = {name: Page(id=f"page-{name}", follow=name == "log") for name in TABS}
        self._keys = KeyBar(HINTS)
        self._looks = 0

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self._head
        yield from self._pages.values()
        yield self._keys

    def on_mount(self) -> None:
        """Begin with the page that was asked for."""
        self._show_tab()

    def on_resize(self) -> None:
        """Fit what is drawn to the new size."""
        self.draw()

    def _show_tab(self) -> None:
        for name, page in self._pages.items():
            page.display = name == self.tab
        self._pages[self.tab].focus()
        self._looks = 0
        self.draw()

    def ask_again(self) -> None:
        """Have the next drawing ask the host, however lately it did."""
        self._looks = 0

    def draw(self) -> None:
        """Show the model as it is now, and ask the host for what the page needs beside."""
        what, every = ASKS[self.tab]
        if self._looks % every == 0:
            self.top.model.asked.ask(self.key, what, LIMITS[what])
        self._looks += 1
        self.redraw()

    def redraw(self) -> None:
        """Show what is known, and ask for nothing."""
        width = max(self.size.width - 2, 1)
        row = self.top.model.row(self.key)
        if row is None:
            self._head.show([text(f"{self.key[1]} on {self.key[0]} is watched no more", "warn"), text()])
            return
        self._head.show([detail.head(row.sight, width, self.top.clock_text()), self._tabs()])
        self._keys.lead(self.top.status_text())
        page = self._pages[self.tab]
        width = max(width - 1, 1)
        match self.tab:
            case "now":
                page.show(detail.page(self.top.story(row), width, self.size.height))
            case "decisions":
                page.show(list(decision_lines(self._reply("decisions"), width)))
            case "events":
                mine = [event for event in self.top.model.feed.events() if (event.host, event.server) == self.key]
                lines = [rule("events", width), *(detail.event_line(e, width) for e in reversed(mine))]
                page.show([*lines, *record_lines(self._reply("records"), width)])
            case _:
                page.show(list(log_lines(self._reply("lines"), width)))

    def _reply(self, what: str) -> Reply:
        return self.top.model.asked.reply(self.key, what)

    def _tabs(self) -> Text:
        line = text()
        for number, name in enumerate(TABS, 1):
            click = Style(meta={"@click": f"screen.tab('{name}')"})
            style = "marked" if name == self.tab else "quiet"
            line.append(f" {number} {name} ", style=self.top.palette.style(style) + click).append(" ")
        return line

    def action_tab(self, name: str) -> None:
        """Show another page."""
        self.tab = name
        self._show_tab()

    def action_next(self, by: int) -> None:
        """Show the page after or before."""
        self.action_tab(TABS[(TABS.index(self.tab) + by) % len(TABS)])

    def action_other(self, by: int) -> None:
        """Show the server after or before it in the table."""
        key = self.top.fleet.neighbour(self.key, by)
        if key is not None:
            self.key = key
            self._show_tab()

    def action_back(self) -> None:
        """Go back to where this was opened from."""
        self.top.back()

    def action_act(self) -> None:
        """Ask what to do with this server."""
        self.top.act_on(self.top.model.row(self.key))


def _unanswered(reply: Reply, width: int) -> Iterator[Text]:
    if reply.error is not None:
        yield from labelled("error", words.one_line(reply.error.message), width, "bad")
        if reply.error.hint:
            yield from labelled("try", words.one_line(reply.error.hint), width)
    elif reply.rows is None:
        yield text(" asking the host …", "quiet")


def decision_lines(reply: Reply, width: int) -> Iterator[Text]:
    """Yield the agent's decisions with their grounds, the newest first."""
    yield rule("decisions of the agent, the newest first", width)
    yield from _unanswered(reply, width)
    if reply.rows is not None and not reply.rows:
        yield text(" none yet", "quiet")
    for entry in reversed(reply.rows or ()):
        for line in agents.decision_lines(entry):
            yield from _fitting(line, width)
        yield text()


def record_lines(reply: Reply, width: int) -> Iterator[Text]:
    """Yield what was done to the server by anybody, as the host keeps it, the newest first."""
    yield text()
    yield rule("acts on record", width)
    yield from _unanswered(reply, width)
    if reply.rows is not None and not reply.rows:
        yield text(" none yet", "quiet")
    for record in reversed(reply.rows or ()):
        yield from _fitting(records.record_line(record), width)


def _fitting(line: Text, width: int) -> Iterator[Text]:
    """Yield a line as it is or, where it is too long, in pieces."""
    style = str(line.style)
    for piece in folded(words.one_line(line.plain), width):
        piece.stylize(style)
        yield piece


def log_lines(reply: Reply, width: int) -> Iterator[Text]:
    """Yield the end of the server's log, secrets blotted out."""
    yield from _unanswered(reply, width)
    if reply.rows is not None and not reply.rows:
        yield text(" the log is empty", "quiet")
    for entry in reply.rows or ():
        yield from folded(words.one_line(entry.get("line", "")), width)
