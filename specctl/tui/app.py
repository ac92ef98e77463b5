"""`specctl top`: the app around the views. It looks at the feed once a second and tells the view to draw; it waits for no host."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter

from specctl.tui import words
from specctl.tui.columns import Row
from specctl.tui.detail import Story
from specctl.tui.dialogs import ErrandView, Menu, WishForm, fields_of
from specctl.tui.events_view import EventsView
from specctl.tui.fleet_view import FleetView
from specctl.tui.glyphs import AsciiOnly
from specctl.tui.help_view import HelpView
from specctl.tui.layout import text
from specctl.tui.model import Feed, Key, Model
from specctl.tui.palette import DARK, LIGHT, PALETTES, PLAIN, SIXTEEN, THEMES, Palette
from specctl.tui.server_view import ServerView
from specctl.tui.svg import self_contained
from specctl.tui.view import View
from specctl.tui.wishes import Deed, Errand, Performer, Phase, Wish

PERIOD_S = 1.0
PEEP_S = 0.1
OWN_COLOURS = (PLAIN, SIXTEEN)
READ_ONLY = "read-only: start with --allow-acts to switch, pin, hold or roll back"


class Top(App[None]):
    """The dashboard. `performer` None: read-only. `clock`: Unix seconds, for what the screen shows alone."""

    TITLE = "specctl top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "quit", show=False),
        # Also over a dialog and in a field.
        Binding("ctrl+c,ctrl+q", "leave", "quit", show=False, priority=True),
        Binding("question_mark,f1", "help", "help", show=False),
        Binding("t", "light_or_dark", "light or dark", show=False),
        Binding("p", "pause", "pause", show=False),
        Binding("r", "refresh_now", "refresh", show=False),
    ]
    CSS = """
    View { background: $background; color: $foreground; }
    """

    def __init__(
        self,
        feed: Feed,
        *,
        performer: Performer | None = None,
        palette: Palette = DARK,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        period_s: float = PERIOD_S,
        open_at: str | None = None,
    ) -> None:
        super().__init__(ansi_color=True if palette in OWN_COLOURS else None)
        for theme in THEMES.values():
            self.register_theme(theme)
        self.model = Model(feed)
        self.palette = palette
        self.theme = palette.theme
        self.errand: Errand | None = None
        self.paused_at: float | None = None
        self.fleet = FleetView()
        self._performer = performer
        self._ascii = AsciiOnly(enabled=ascii_only)
        self._clock = clock
        self._period_s = period_s
        self._open_at = open_at
        self._peeped = (0, 0)
        self._note = text()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what each drawn line goes through: without UTF-8, the signs that ASCII lacks are replaced."""
        found = super().get_line_filters()
        return [*found, self._ascii] if self._ascii.enabled else found

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return what is shown as an SVG that fetches nothing from anywhere."""
        return self_contained(super().export_screenshot(title=title, simplify=simplify))

    def on_mount(self) -> None:
        """Begin with the fleet, or with the server that was named."""
        self.model.look()
        self.push_screen(self.fleet)
        self.begin()
        self.set_interval(self._period_s, self.tick)
        self.set_interval(PEEP_S, self.peep)

    def begin(self) -> None:
        """Open the server that was named, once it is known."""
        row = self.model.of_host(self._open_at) if self._open_at else None
        if row is not None and self.screen is self.fleet:
            self._open_at = None
            self.open_server(row.key)

    def tick(self) -> None:
        """Look at the feed, and have what is shown drawn anew unless it is paused."""
        self.model.look()
        if self.paused_at is None:
            self._draw()

    def _draw(self) -> None:
        for screen in reversed(self.screen_stack):
            if isinstance(screen, View):
                screen.draw()
                return

    def peep(self) -> None:
        """Show at once what threads have brought meanwhile: replies of hosts, progress of an act."""
        errand = self.errand
        seen = (self.model.asked.revision, errand.revision if errand is not None else 0)
        if seen == self._peeped:
            return
        self._peeped = seen
        screen = self.screen
        if isinstance(screen, ErrandView) or (isinstance(screen, ServerView) and self.paused_at is None):
            screen.redraw()

    def story(self, row: Row) -> Story:
        """Return all that is known of one server."""
        host, server = row.key
        reply = self.model.asked.reply(row.key, "decisions")
        mine = tuple(event for event in self.model.feed.events() if (event.host, event.server) == row.key)
        newest = reply.rows[-1] if reply.rows else None
        return Story(row=row, past=self.model.feed.past(host, server), decision=newest, events=mine)

    def clock_text(self) -> Text:
        """Return the time of day, or since when what is shown stands still."""
        now = datetime.fromtimestamp(self._clock()).astimezone()
        if self.paused_at is not None:
            since = datetime.fromtimestamp(self.paused_at).astimezone()
            return text(f" paused at {since:%H:%M:%S} ", "marked")
        return text(f"{now:%H:%M:%S}", "quiet")

    def status_text(self) -> Text:
        """Return what goes on beside: an act under way, a word to the person."""
        line = self._note.copy()
        errand = self.errand
        if errand is not None and errand.open:
            line.append(f" {words.one_line(errand.brief)} ", style="marked")
        return line

    def say(self, words_said: str) -> None:
        """Show a word to the person for a few seconds."""
        self._note = text(f" {words_said} ", "marked")
        self._draw()
        self.set_timer(5.0, self._unsay)

    def _unsay(self) -> None:
        self._note = text()
        if self.paused_at is None:
            self._draw()

    def open_server(self, key: Key, tab: str = "now") -> None:
        """Show a server in detail."""
        self.push_screen(ServerView(key, tab))

    def back(self) -> None:
        """Close the view on top; the cursor of the table follows to the server that was looked at."""
        screen = self.screen
        if screen is self.fleet:
            return
        if isinstance(screen, ServerView):
            self.fleet.table.seek(screen.key)
        self.pop_screen()
        self._draw()

    def action_events(self) -> None:
        """Show what happened anywhere."""
        self.push_screen(EventsView())

    def action_help(self) -> None:
        """Show keys and signs."""
        if not isinstance(self.screen, HelpView):
            self.push_screen(HelpView())

    def action_light_or_dark(self) -> None:
        """Go from dark to light and back; without colour there is neither."""
        if self.palette in OWN_COLOURS:
            self.say("the terminal's own colours are in use: NO_COLOR is set, or it has sixteen")
            return
        self.palette = PALETTES[LIGHT.theme if self.palette is DARK else DARK.theme]
        self.theme = self.palette.theme
        self.refresh_css()
        self._draw()

    def action_pause(self) -> None:
        """Stand still, or go on; the feed goes on in either case."""
        self.paused_at = None if self.paused_at is not None else self._clock()
        self._draw()

    def action_refresh_now(self) -> None:
        """Draw what is known now, and ask the host again for what the page shows."""
        self.model.look()
        if isinstance(self.screen, ServerView):
            self.screen.ask_again()
        self._draw()

    def action_leave(self) -> None:
        """Quit; while an act runs only a second press does, since nobody here would see its end."""
        errand = self.errand
        if errand is None or errand.phase is not Phase.RUNNING or self._note.plain.startswith(" an act runs"):
            self.exit()
            return
        self.say("an act runs: a shows it; q again leaves it to the host's guard, which takes it back")

    def act_on(self, row: Row | None) -> None:
        """Ask what to do with a server; show the act under way where there is one."""
        if self._performer is None:
            self.say(READ_ONLY)
        elif self.errand is not None and self.errand.open:
            self.push_screen(ErrandView(self.errand))
        elif row is not None:
            host, server = row.key
            title = words.one_line(f"act on {server} on {host}")
            choices = {deed.value: deed.means for deed in Deed}
            self.push_screen(Menu(title, choices), lambda name: self._chosen(row, Deed(name) if name else None))

    def _chosen(self, row: Row, deed: Deed | None) -> None:
        if deed is None or self._performer is None:
            return
        host, server = row.key
        if deed is Deed.SWITCH:
            now = row.sight.mode.algo if row.sight.mode else None
            algos = {algo: "what it runs now" if algo == now else "" for algo in self._performer.algos(host, server)}
            title = words.one_line(f"switch {server} on {host} to")
            self.push_screen(Menu(title, algos), lambda algo: self._wished(_switch(row, algo)))
        elif fields_of(deed):
            form = WishForm(deed, host, server, self._performer.algos(host, server))
            self.push_screen(form, self._wished)
        else:
            self._wished(Wish(deed=deed, host=host, server=server))

    def _wished(self, wish: Wish | None) -> None:
        if wish is None or self._performer is None:
            return
        self.errand = Errand(wish, self._performer)
        self._peeped = (self.model.asked.revision, -1)
        self.errand.start()
        self.push_screen(ErrandView(self.errand))


def _switch(row: Row, algo: str | None) -> Wish | None:
    host, server = row.key
    return None if algo is None else Wish(deed=Deed.SWITCH, host=host, server=server, algo=algo)
