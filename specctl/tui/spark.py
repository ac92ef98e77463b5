"""Draw a series of figures in cells: one line of bars, or a chart of several; what is unknown stays blank, never zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from specctl.tui.glyphs import LEVELS

Series = Sequence[float | None]


def top_of(series: Series) -> float | None:
    """Return the largest known value; None where nothing is known."""
    known = [value for value in series if value is not None and math.isfinite(value)]
    return max(known, default=None)


def squeezed(series: Series, width: int) -> list[float | None]:
    """Return exactly `width` values, the newest last: unknown before the first, the mean of each cell where there are more."""
    if width <= 0:
        return []
    if len(series) <= width:
        return [None] * (width - len(series)) + list(series)
    bounds = [round(place * len(series) / width) for place in range(width + 1)]
    return [_mean(series[begin:end]) for begin, end in pairwise(bounds)]


def _mean(part: Series) -> float | None:
    known = [value for value in part if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None


def line(series: Series, width: int, top: float | None = None) -> str:
    """Return one line of bars; zero is the lowest bar, unknown a blank. `top`: what a full bar stands for."""
    return chart(series, width, 1, top)[0]


def chart(series: Series, width: int, height: int, top: float | None = None) -> list[str]:
    """Return `height` lines, the upper first, of a chart whose full height stands for `top` (None: the largest value)."""
    values = squeezed(series, width)
    full = top_of(values) if top is None else top
    eighths = heights(values, full, height)
    return ["".join(_cell(part, row) for part in eighths) for row in range(height - 1, -1, -1)]


def heights(values: Series, full: float | None, height: int) -> list[int | None]:
    """Return how many eighths of a cell each value fills of so many cells; None where it is unknown."""
    return [_eighths(value, full, height) for value in values]


def _eighths(value: float | None, full: float | None, height: int) -> int | None:
    """Return how many eighths of a cell are filled, at least one for what is known; None for what is not."""
    if value is None or not math.isfinite(value):
        return None
    most = height * len(LEVELS)
    if not full or full <= 0 or not math.isfinite(full):
        return 1
    return min(max(round(max(value, 0.0) / full * most), 1), most)


def _cell(eighths: int | None, row: int) -> str:
    if eighths is None:
        return " "
    left = eighths - row * len(LEVELS)
    return " " if left <= 0 else LEVELS[min(left, len(LEVELS)) - 1]


def bar(ratio: float | None, width: int) -> str:
    """Return a bar of that share, whole cells; blank where the share is unknown."""
    if ratio is None or not math.isfinite(ratio):
        return " " * max(width, 0)
    done = min(max(round(ratio * width), 0), width)
    return "━" * done + "─" * (width - done)
