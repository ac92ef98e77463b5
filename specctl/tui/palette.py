"""The dashboard's colours: one name a meaning, for dark and light screens and for none at all.

Colour only repeats what a word or a sign says already; a palette without colour keeps bold, dim and reverse, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme as StyleTheme
from textual.theme import Theme

_TAGS: Mapping[str, str] = {"number": "", "detail": "", "elapsed": "", "default": ""}
_DARK: Mapping[str, str] = {
    "host": "bold #e6e6e6",
    "phase": "#5fc9d8",
    "eta": "#8a9199",
    "bar.done": "#5fc9d8",
    "bar.todo": "#3a4149",
    "good": "#7fc97f",
    "warn": "#e5c07b",
    "bad": "bold #f07178",
    "quiet": "#8a9199",
    "faint": "#4d555e",
    "id": "bold",
    "column": "#8a9199",
    "sorted": "bold #5fc9d8",
    "heading": "on #1c2227",
    "title": "bold #5fc9d8",
    "group": "bold #d7d7d7 on #262c33",
    "cursor": "on #2d3b4a",
    "marked": "bold #12161a on #e5c07b",
    "key": "bold #5fc9d8",
    "line.run": "#5fc9d8",
    "line.wait": "#e5c07b",
    "line.tokens": "#7fc97f",
    "line.accept": "#c49bd6",
    "line.gpu": "#6fa8dc",
}
_LIGHT: Mapping[str, str] = {
    "host": "bold #111111",
    "phase": "#00687a",
    "eta": "#5f656b",
    "bar.done": "#00687a",
    "bar.todo": "#c4c8cc",
    "good": "#1c6b1c",
    "warn": "#8a5a00",
    "bad": "bold #b3261e",
    "quiet": "#5f656b",
    "faint": "#a5abb1",
    "id": "bold",
    "column": "#5f656b",
    "sorted": "bold #00687a",
    "heading": "on #eceff1",
    "title": "bold #00687a",
    "group": "bold #222222 on #e3e6e9",
    "cursor": "on #cfe4ef",
    "marked": "bold #ffffff on #8a5a00",
    "key": "bold #00687a",
    "line.run": "#00687a",
    "line.wait": "#8a5a00",
    "line.tokens": "#1c6b1c",
    "line.accept": "#74409a",
    "line.gpu": "#1f5fa8",
}
# The terminal's own sixteen colours, on its own background, whichever that is.
_SIXTEEN: Mapping[str, str] = {
    "host": "bold",
    "phase": "cyan",
    "eta": "dim",
    "bar.done": "cyan",
    "bar.todo": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "quiet": "dim",
    "faint": "dim",
    "id": "bold",
    "column": "dim",
    "sorted": "bold cyan",
    "heading": "",
    "title": "bold cyan",
    "group": "bold underline",
    "cursor": "reverse",
    "marked": "reverse",
    "key": "bold cyan",
    "line.run": "cyan",
    "line.wait": "yellow",
    "line.tokens": "green",
    "line.accept": "magenta",
    "line.gpu": "blue",
}
_PLAIN: Mapping[str, str] = {
    "host": "bold",
    "phase": "",
    "eta": "dim",
    "bar.done": "",
    "bar.todo": "dim",
    "good": "",
    "warn": "bold",
    "bad": "bold",
    "quiet": "dim",
    "faint": "dim",
    "id": "bold",
    "column": "dim",
    "sorted": "bold underline",
    "heading": "",
    "title": "bold",
    "group": "bold underline",
    "cursor": "reverse",
    "marked": "bold reverse",
    "key": "bold",
    "line.run": "",
    "line.wait": "dim",
    "line.tokens": "",
    "line.accept": "",
    "line.gpu": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Named styles on one kind of screen; `theme` is Textual's own name for it."""

    theme: str
    styles: Mapping[str, Style]
    _console: Console = field(repr=False, compare=False)

    def style(self, name: str) -> Style:
        """Return a named style; a name that nobody knows has none."""
        return self.styles.get(name, Style.null())

    def segments(self, line: Text) -> Iterator[Segment]:
        """Yield a line's pieces; its spans name styles of this palette."""
        return (piece for piece in line.render(self._console, end=""))


def _palette(theme: str, named: Mapping[str, str]) -> Palette:
    styles = {name: Style.parse(text) for name, text in {**_TAGS, **named}.items()}
    console = Console(theme=StyleTheme(styles, inherit=False), markup=False, highlight=False, emoji=False)
    return Palette(theme=theme, styles=styles, _console=console)


DARK = _palette("specctl-dark", _DARK)
LIGHT = _palette("specctl-light", _LIGHT)
SIXTEEN = _palette("specctl-16", _SIXTEEN)
PLAIN = _palette("specctl-plain", _PLAIN)

# A theme of Textual that leaves colours to the terminal has to name each of these variables.
_ANSI_NAMES = (
    "ansi-background",
    "ansi-foreground",
    "border-blurred",
    "block-cursor-foreground",
    "block-cursor-background",
    "input-cursor-background",
    "input-cursor-foreground",
    "input-selection-background",
    "input-selection-foreground",
    "screen-selection-background",
    "screen-selection-foreground",
)


def _own_colours(name: str) -> Theme:
    """Return a theme that leaves all colours to the terminal."""
    return Theme(
        name=name,
        primary="ansi_default",
        secondary="ansi_default",
        warning="ansi_default",
        error="ansi_default",
        success="ansi_default",
        accent="ansi_default",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables={
            **dict.fromkeys(_ANSI_NAMES, "ansi_default"),
            "input-cursor-text-style": "reverse",
            "block-cursor-text-style": "reverse",
        },
        ansi=True,
    )


def _coloured(palette: Palette, *, foreground: str, background: str, panel: str, dark: bool) -> Theme:
    """Return a theme with the palette's own colours for what they mean."""
    colours = {name: style.color.name for name, style in palette.styles.items() if style.color is not None}
    return Theme(
        name=palette.theme,
        primary=colours["phase"],
        accent=colours["phase"],
        warning=colours["warn"],
        error=colours["bad"],
        success=colours["good"],
        foreground=foreground,
        background=background,
        surface=background,
        panel=panel,
        dark=dark,
    )


# What Textual draws by itself: backgrounds, scroll bars, the fields of a dialog.
THEMES: Mapping[str, Theme] = {
    DARK.theme: _coloured(DARK, foreground="#c9ced3", background="#12161a", panel="#1c2227", dark=True),
    LIGHT.theme: _coloured(LIGHT, foreground="#222222", background="#fafafa", panel="#eceff1", dark=False),
    **{palette.theme: _own_colours(palette.theme) for palette in (SIXTEEN, PLAIN)},
}
PALETTES: Mapping[str, Palette] = {each.theme: each for each in (DARK, LIGHT, SIXTEEN, PLAIN)}
