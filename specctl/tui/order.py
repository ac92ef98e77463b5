"""Which servers the table shows and in which order: filter, sort, group; pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from specctl.tui import words
from specctl.tui.columns import BY_KEY, FLAG, Column, Row, natural


class Grouping(enum.Enum):
    """By what servers stand together; the value is the word that the screen shows."""

    NONE = "none"
    GROUP = "group"
    STATE = "state"
    ALGO = "algo"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A line over the servers of a group: its name and how many."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How a person wants the table: words to look for, the column to sort by, by what to group."""

    filter: str = ""
    sort: str = "host"
    falling: bool = False
    grouping: Grouping = Grouping.NONE

    @property
    def column(self) -> Column:
        """Return the column that is sorted by."""
        return BY_KEY[self.sort]


_GROUPS: Mapping[Grouping, Callable[[Row], str]] = {
    Grouping.GROUP: lambda row: words.one_line(", ".join(row.sight.groups)) or "no group",
    Grouping.STATE: lambda row: words.one_line(row.sight.state),
    Grouping.ALGO: lambda row: words.one_line(row.sight.mode.algo) if row.sight.mode else "algo unknown",
    Grouping.HOST: lambda row: words.one_line(row.sight.host),
}


def matches(row: Row, wanted: str) -> bool:
    """Claim that a row has every word: in its names, groups, state, algo, decision or problems; -word: not; !: has a problem."""
    sight = row.sight
    said = [
        sight.host,
        sight.server,
        *sight.groups,
        words.state_text(sight),
        words.mode_text(sight.mode),
        words.decision_text(sight),
        *(problem.text for problem in row.problems),
    ]
    text = "\n".join(said).casefold()
    return all(_has(row, text, word) for word in wanted.casefold().split())


def _has(row: Row, text: str, word: str) -> bool:
    if word == FLAG:
        return bool(row.problems)
    if word.startswith("-") and len(word) > 1:
        return word[1:] not in text
    return word in text


def arranged(rows: Sequence[Row], order: Order) -> tuple[Row | Heading, ...]:
    """Return the lines of the table: rows that match, sorted, what is unknown last either way, under headings where grouped."""
    kept = [row for row in rows if matches(row, order.filter)] if order.filter.strip() else list(rows)
    ordered = _sorted(kept, order)
    name = _GROUPS.get(order.grouping)
    if name is None:
        return tuple(ordered)
    groups: dict[str, list[Row]] = {}
    for row in ordered:
        groups.setdefault(name(row), []).append(row)
    lines: list[Row | Heading] = []
    for title in sorted(groups, key=natural):
        lines += [Heading(name=title, rows=tuple(groups[title])), *groups[title]]
    return tuple(lines)


def _sorted(rows: list[Row], order: Order) -> list[Row]:
    by_name = sorted(rows, key=lambda row: (natural(row.sight.host), natural(row.sight.server)))
    keyed = [(order.column.sort(row), row) for row in by_name]
    there = [(key, row) for key, row in keyed if key is not None]
    there.sort(key=lambda pair: pair[0], reverse=order.falling)
    return [row for _, row in there] + [row for key, row in keyed if key is None]
