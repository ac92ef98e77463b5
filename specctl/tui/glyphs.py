"""Signs beyond ASCII, and what stands for them on a terminal that cannot draw them: one filter over all that is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

LEVELS = "▁▂▃▄▅▆▇█"
_STEPS = "..--==##"
# One cell each: the drawing keeps its shape. What is not named here becomes "?" as often as it is wide.
INSTEAD: Mapping[str, str] = {
    **dict(zip(LEVELS, _STEPS, strict=True)),
    "—": "-",
    "–": "-",
    "−": "-",
    "…": "~",
    "×": "x",
    "·": "|",
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "↵": "E",
    "▲": "^",
    "▼": "v",
    "▶": ">",
    "●": "*",
    "○": "o",
    "░": ":",
    "▒": "%",
    "°": "'",
    "±": "~",
    "─": "-",
    "━": "=",
    "│": "|",
    "┃": "|",
    "┌": "+",
    "┐": "+",
    "└": "+",
    "┘": "+",
    "├": "+",
    "┤": "+",
    "┬": "+",
    "┴": "+",
    "╭": "+",
    "╮": "+",
    "╰": "+",
    "╯": "+",
    "╷": "|",
    "╵": "|",
    "╶": "-",
    "╴": "-",
    "▔": "-",
    "▎": "|",
    "▏": "|",
    "▕": "|",
    "▊": "|",
    "█": "#",
}


def ascii_text(text: str) -> str:
    """Return a text of the same width in ASCII alone."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else INSTEAD.get(char, "?" * cell_len(char)) for char in text)


class AsciiOnly(LineFilter):
    """Draws with ASCII alone, whatever widget drew it."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with their signs replaced."""
        del background
        return [Segment(ascii_text(text), style, control) for text, style, control in segments]
