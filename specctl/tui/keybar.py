"""The line at the foot of a screen: which keys do what; each can be clicked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from specctl.tui.layout import text
from specctl.tui.lines import palette_of, strip

# A key as it is written, what it does, and the action that a click runs.
Hint = tuple[str, str, str]


class KeyBar(Widget):
    """Shows hints, the first the most important, as many as fit; `say` puts a message in their place."""

    DEFAULT_CSS = """
    KeyBar { height: 1; dock: bottom; background: $panel; }
    """

    def __init__(self, hints: Sequence[Hint]) -> None:
        super().__init__()
        self._hints = tuple(hints)
        self._lead = text()

    def lead(self, line: Text) -> None:
        """Show a line before the hints: a filter, a pause, an act under way."""
        if line != self._lead:
            self._lead = line
            self.refresh()

    def offer(self, hints: Sequence[Hint]) -> None:
        """Show other hints."""
        self._hints = tuple(hints)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        del y
        palette, width = palette_of(self.app), self.size.width
        line = text(" ")
        if self._lead.plain:
            line.append_text(self._lead).append("   ")
        for key, means, action in self._hints:
            if line.cell_len + len(key) + len(means) + 3 > width:
                break
            click = Style(meta={"@click": action})
            line.append(key, style=palette.style("key") + click)
            line.append(f" {means}", style=palette.style("quiet") + click).append("  ")
        return strip(line, width, palette, self.rich_style)
