"""A view made of lines: it scrolls, draws only the lines on the screen, and anew only those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from specctl.tui.palette import DARK, Palette


def palette_of(app: App[object]) -> Palette:
    """Return the palette of an app; the dark one where it has none of ours."""
    found = getattr(app, "palette", None)
    return found if isinstance(found, Palette) else DARK


def strip(line: Text, width: int, palette: Palette, base: Style, over: Style | None = None) -> Strip:
    """Return a line exactly so many cells wide; what is too long is cut, wide signs included. `over` lies over all of it."""
    last = over or Style.null()
    pieces = [Segment(text, base + (style or Style.null()) + last) for text, style, _ in palette.segments(line)]
    return Strip(pieces).adjust_cell_length(width, base + last)


class Lines(ScrollView, can_focus=False):
    """Shows lines of text, as wide as it is itself; `follow` keeps the end in sight while nobody scrolls away from it."""

    DEFAULT_CSS = """
    Lines { height: auto; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str | None = None, follow: bool = False) -> None:  # noqa: A002  # Textual's own word
        super().__init__(id=id)
        self.lines: tuple[Text, ...] = ()
        self._follow = follow

    def show(self, lines: Sequence[Text]) -> None:
        """Show these lines in place of those before; only what differs is drawn."""
        before, self.lines = self.lines, tuple(lines)
        stuck = self._follow and self.scroll_offset.y >= self.max_scroll_y - 1
        if len(before) != len(self.lines):
            self.virtual_size = Size(self.size.width, len(self.lines))
            self.refresh(layout=self.styles.auto_dimensions)
        else:
            for place, (old, new) in enumerate(zip(before, self.lines, strict=True)):
                if old != new:
                    self.refresh_line(place)
        if stuck:
            self.scroll_end(animate=False)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        place = y + self.scroll_offset.y
        base = self.rich_style
        if not 0 <= place < len(self.lines):
            return Strip.blank(self.size.width, base)
        return strip(self.lines[place], self.size.width, palette_of(self.app), base)

    def watch_virtual_size(self, size: Size) -> None:
        """Keep what is scrolled within what there is."""
        del size
        self.scroll_to(y=min(self.scroll_offset.y, self.max_scroll_y), animate=False)


class Page(Lines, can_focus=True):
    """Lines that take the keys of a reader: arrows, hjkl, pages, ends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "up", show=False),
        Binding("down,j", "scroll_down", "down", show=False),
        Binding("pageup,ctrl+b", "page_up", "page up", show=False),
        Binding("pagedown,ctrl+f", "page_down", "page down", show=False),
        Binding("home,g", "scroll_home", "top", show=False),
        Binding("end,G", "scroll_end", "end", show=False),
    ]

    DEFAULT_CSS = """
    Page { height: 1fr; }
    """
