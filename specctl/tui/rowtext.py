"""One line of the table of servers as text, and the width that its columns want; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from specctl.tui import words
from specctl.tui.columns import COLUMNS, GAP, Place, Row
from specctl.tui.order import Heading, Order

ELLIPSIS = "…"
FALLING, RISING = "▼", "▲"


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """Return a text in exactly so many cells: cut with … where it is too long."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + ELLIPSIS
    pad = " " * (width - cell_len(text))
    return pad + text if right else text + pad


def wanted(rows: Iterable[Row]) -> dict[str, int]:
    """Return the widest text of each column whose width depends on what it shows."""
    widest = {column.key: 0 for column in COLUMNS if column.most and column.key != "trend"}
    sized = [column for column in COLUMNS if column.key in widest]
    for row in rows:
        for column in sized:
            widest[column.key] = max(widest[column.key], cell_len(column.text(row, column.most)))
    return widest


def shared(rows: Iterable[Row]) -> frozenset[str]:
    """Return the hosts that have several servers here."""
    return frozenset(host for host, count in Counter(row.sight.host for row in rows).items() if count > 1)


def row_line(row: Row, places: Sequence[Place], several: Collection[str]) -> Text:
    """Return a server's line; where there is no column for the server, its host's cell names it if the host has `several`."""
    line = Text(no_wrap=True, end="")
    named = any(place.column.key == "server" for place in places)
    for place in places:
        column = place.column
        text = column.text(row, place.width)
        if column.key == "host" and not named and row.sight.host in several:
            text = f"{text}/{words.one_line(row.sight.server)}"
        line.append(" " * (place.start - line.cell_len))
        line.append(fitted(text, place.width, right=column.right), style=column.style(row))
    return line


def heading_line(heading: Heading, width: int) -> Text:
    """Return the line over a group: its name, how many servers, and what they do together."""
    rows = heading.rows
    tokens = [value for row in rows if (value := words.fresh(row.sight.tokens_per_s)) is not None]
    running = [value for row in rows if (value := words.fresh(row.sight.running)) is not None]
    parts = [
        heading.name,
        f"{len(rows)} server{'s' if len(rows) != 1 else ''}",
        f"{words.figure(sum(tokens))} tok/s" if tokens else "",
        f"{words.whole(sum(running))} running" if running else "",
        f"{bad} with problems" if (bad := sum(bool(row.problems) for row in rows)) else "",
    ]
    line = Text(no_wrap=True, end="")
    return line.append(fitted(" · ".join(part for part in parts if part), width), style="group")


def title_line(places: Sequence[Place], order: Order) -> Text:
    """Return the heading of the table; the column that is sorted by has a sign, and each says which it is when it is clicked."""
    line = Text(no_wrap=True, end="")
    for place in places:
        column = place.column
        sorted_by = column.key == order.sort
        sign = (FALLING if order.falling else RISING) if sorted_by else ""
        room = place.width - len(sign)
        text = fitted(column.title, min(room, len(column.title))) + sign
        line.append(" " * (place.start - line.cell_len))
        line.append(fitted(text, place.width, right=column.right), style="sorted" if sorted_by else "column")
    return line


def column_at(places: Sequence[Place], x: int) -> str | None:
    """Return the key of the column at a cell of the screen; the gap after a column belongs to it."""
    for place in places:
        if place.start <= x < place.start + place.width + GAP:
            return place.column.key
    return None
