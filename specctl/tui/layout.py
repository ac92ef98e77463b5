"""Put lines together: parts that fit a width, rules with a title, labelled lines, two columns beside each other; pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

from specctl.tui.rowtext import fitted

SEPARATOR = "  ·  "
LABEL = 11
ROOMY = 20

Part = tuple[int, Text]


def text(words: str = "", style: str = "") -> Text:
    """Return a line; what is appended to it does not take its style."""
    return Text(no_wrap=True, end="").append(words, style=style)


def packed(parts: Sequence[Part], width: int, right: Text | None = None) -> Text:
    """Return parts (keep, text) in one line, those with the least `keep` left out until the rest fits beside what is `right`."""
    room = width - (right.cell_len + 2 if right is not None else 0)
    chosen = list(parts)
    while len(chosen) > 1 and _length(chosen) > room:
        chosen.remove(min(chosen, key=lambda part: part[0]))
    line = text()
    for number, (_, part) in enumerate(chosen):
        if number:
            line.append(SEPARATOR, style="faint")
        line.append_text(part)
    line.truncate(max(room, 0), overflow="ellipsis")
    if right is not None:
        line.append(" " * max(width - right.cell_len - line.cell_len, 1))
        line.append_text(right)
    return line


def _length(parts: Sequence[Part]) -> int:
    return sum(part.cell_len for _, part in parts) + cell_len(SEPARATOR) * (len(parts) - 1)


def rule(title: str, width: int, note: str = "") -> Text:
    """Return a line with a title, and a note at its end where that fits."""
    title = fitted(title, min(cell_len(title), max(width - 4, 1)))
    line = text("─ ", "faint").append(title, style="title").append(" ")
    room = width - line.cell_len
    if note and cell_len(note) + 3 <= room:
        line.append("─" * (room - cell_len(note) - 3), style="faint").append(f" {note} ", style="quiet").append(
            "─", style="faint"
        )
    else:
        line.append("─" * max(room, 0), style="faint")
    return line


def labelled(label: str, words: str, width: int, style: str = "") -> list[Text]:
    """Return a labelled text, wrapped under itself."""
    room = max(width - LABEL - 1, 10)
    pieces = textwrap.wrap(words, room, break_on_hyphens=False) or [""]
    lines = []
    for number, piece in enumerate(pieces):
        head = fitted(label if number == 0 else "", LABEL)
        line = text(f" {head}", "quiet")
        lines.append(line.append(fitted(piece, min(cell_len(piece), room)), style=style))
    return lines


def folded(words: str, width: int) -> list[Text]:
    """Return a long line in pieces as wide as the screen, those after the first set in where there is room for that."""
    margins = (1, 5 if width >= ROOMY else 1)
    pieces: list[str] = []
    piece, taken = "", 0
    for char in words:
        wide = cell_len(char)
        if taken + wide > width - margins[bool(pieces)]:
            pieces.append(piece)
            piece, taken = "", 0
        piece, taken = piece + char, taken + wide
    pieces.append(piece)
    return [text(" " * margins[bool(number)]).append(piece) for number, piece in enumerate(pieces)]


def beside(left: Iterable[Text], right: Iterable[Text], width: int, gap: int = 3) -> list[Text]:
    """Return two columns of lines as one; the left one is `width` cells wide."""
    joined = []
    for one, other in zip_longest(left, right):
        line = text() if one is None else one.copy()
        line.truncate(width)
        if other is not None:
            line.append(" " * (width + gap - line.cell_len))
            line.append_text(other)
        joined.append(line)
    return joined
