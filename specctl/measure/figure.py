"""What a plot shows, as values: panels of lines, bands and marks; drawn by adapters/figures.py, which knows the library."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured place; `low` and `high` bound its interval, None without one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Look(enum.Enum):
    """How a line's points are shown: joined with marks, marks alone, joined alone, or as steps that hold until the next.

    Intervals are bars at the points, or a shade along a line that is joined alone. Lines joined alone and steps are courses: they
    fill their axes from end to end.
    """

    JOINED = "joined"
    MARKS = "marks"
    PLAIN = "plain"
    STEPS = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series; lines of one `label` share a colour in all panels of a figure."""

    label: str
    points: tuple[Point, ...]
    look: Look = Look.JOINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One stretch of a band, from `start` to `end` on the x axis, coloured by its label."""

    start: float
    end: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One row of stretches under each other, as in a time table."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place on the x axis with a word; `low` and `high` shade its doubt."""

    x: float
    text: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes; `x_log` doubles from tick to tick. A panel holds lines or bands, not both."""

    x_label: str
    y_label: str = ""
    title: str = ""
    lines: tuple[Line, ...] = ()
    bands: tuple[Band, ...] = ()
    marks: tuple[Mark, ...] = ()
    x_log: bool = False
    y_from_zero: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Panels under each other, or `across` beside each other; `note` stands small below (what was measured, where, when)."""

    title: str
    panels: tuple[Panel, ...]
    note: str = ""
    across: int = 1
