"""The keys and signs of the dashboard, over whatever is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from specctl.tui.layout import rule, text
from specctl.tui.lines import Page
from specctl.tui.rowtext import fitted

KEYS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    (
        "move",
        (
            ("↑ ↓  k j", "one line"),
            ("PgUp PgDn", "one screen"),
            ("g G  Home End", "first, last"),
            ("Enter →", "a server in detail"),
            ("Esc ←  h", "back; clears a filter"),
            ("1 2 3 4  Tab", "pages of a server"),
            ("n N", "next server, the one before"),
        ),
    ),
    (
        "the table",
        (
            ("/", "filter: words, -word without it, ! with problems"),
            ("s S  > <", "sort by the next column, reverse; or click a heading"),
            ("b", "group by: host group, state, algo, host"),
            ("v", "show or hide the server in short"),
            ("e", "events"),
            ("l", "log of the server, secrets blotted out"),
        ),
    ),
    (
        "the rest",
        (
            ("a", "act: switch, pin, hold … (with --allow-acts)"),
            ("p", "pause what is drawn"),
            ("r", "draw and ask again now"),
            ("t", "light or dark"),
            ("q  Ctrl-C", "quit"),
        ),
    ),
)
SIGNS = (
    ("—", "not known; never zero"),
    ("!", "something is wrong: see NOW, or the detail"),
    ("AGE", "how old the figures are; old ones are dim"),
    ("proven", "the algo's own evidence was seen; claimed: not"),
    ("(9 of 12)", "a sum over the 9 servers that tell it now"),
    ("8×212", "8 GPUs, 212 W each on average"),
)
KEY_WIDTH = 15


class HelpView(ModalScreen[None]):
    """All keys and signs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter,q,h,left", "dismiss", "close", show=False),
    ]
    DEFAULT_CSS = """
    HelpView { align: center middle; }
    HelpView Vertical { width: 74; max-width: 100%; height: auto; max-height: 100%; border: round $primary;
                        background: $panel; padding: 0 1; }
    HelpView Page { height: auto; max-height: 100%; background: $panel; }
    """

    def compose(self) -> ComposeResult:
        """Lay the page out."""
        with Vertical() as box:
            box.border_title = "keys"
            box.border_subtitle = "Esc closes"
            self._page = Page()
            yield self._page

    def on_mount(self) -> None:
        """Fill the page."""
        self._page.focus()
        self.call_after_refresh(self._fill)

    def on_resize(self) -> None:
        """Fit the page to the new size."""
        self._fill()

    def _fill(self) -> None:
        self._page.show(list(help_lines(max(self._page.size.width, 20))))


def help_lines(width: int) -> Iterator[Text]:
    """Yield the lines of the help."""
    for title, keys in (*KEYS, ("signs", SIGNS)):
        yield rule(title, width)
        for key, means in keys:
            line = text(f" {fitted(key, KEY_WIDTH)}", "key").append(means)
            line.truncate(width, overflow="ellipsis")
            yield line
