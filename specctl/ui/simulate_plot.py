"""A simulation as an SVG drawing: concurrency over time, and under it what each policy served with, one band a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from specctl.control.mode import Mode
from specctl.control.replay.compare import Comparison, Row, Span
from specctl.control.replay.load import Series
from specctl.control.replay.sizing import Size
from specctl.ui.text import age

# Okabe and Ito's colours, which are told apart with any kind of sight; more modes than colours begin anew.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c6bb1")
AWAY = "#222222"
LEFT, RIGHT, TOP = 190, 20, 44
WIDTH, HEIGHT = 760, 170
BAND, GAP = 16, 8
LINE = 18
FONT = "font-family='DejaVu Sans, Verdana, sans-serif' font-size='12' fill='#333333'"
# Steps between marks of the time axis, in seconds, and the unit that they are told in.
STEPS = (
    (60, 60, "min"), (300, 60, "min"), (600, 60, "min"), (1800, 60, "min"), (3600, 3600, "h"), (10_800, 3600, "h"),
    (21_600, 3600, "h"), (43_200, 3600, "h"), (86_400, 86_400, "d"), (172_800, 86_400, "d"), (604_800, 86_400, "d"),
)  # fmt: skip
MOST_MARKS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The seconds that the drawing shows, and the colour of each mode."""

    span_s: float
    colours: Mapping[Mode | None, str]

    def x(self, seconds: float) -> float:
        """Return where a moment is drawn."""
        return LEFT + WIDTH * min(seconds, self.span_s) / self.span_s


def title(size: Size, found: Comparison) -> str:
    """Say in two lines what was replayed, and on what terms."""
    setting = found.setting
    what = f"{size.name} · {age(size.span_s)}"
    if size.requests is not None and size.peak is not None:
        what += f" · {size.requests} requests · busiest minute at {size.peak:.2f} of the best mode's capacity"
    else:
        what += " · concurrency as it was recorded, whatever serves"
    return f"{what}\nfor {setting.objective.metric.value} · a switch takes {setting.outage} · begins in {setting.start}"


def svg(found: Comparison, shown: Sequence[Row], *, title: str) -> str:
    """Return the drawing as the text of an SVG file; `title` may have several lines. A static mode needs no band."""
    banded = [row for row in shown if row.mode is None]
    modes = tuple(found.setting.service.rates)
    colours: dict[Mode | None, str] = {mode: COLOURS[place % len(COLOURS)] for place, mode in enumerate(modes)}
    frame = _Frame(span_s=found.series.span_s, colours={**colours, None: AWAY})
    lines = title.splitlines()
    top = TOP + (len(lines) - 1) * LINE
    under = top + HEIGHT + 2 * LINE
    below = under + len(banded) * (BAND + GAP) + LINE
    parts = [
        *(_text(LEFT, TOP - LINE + place * LINE, line) for place, line in enumerate(lines)),
        *_concurrency(found.series, top),
        *_axis(frame, top, below - LINE - GAP),
    ]
    for place, row in enumerate(banded):
        parts += _band(frame, row, under + place * (BAND + GAP))
    parts += _legend({**{str(mode): colours[mode] for mode in modes}, "switching": AWAY}, below)
    height = below + LINE * (1 + (len(modes) + 1 + 2) // 3)
    size = f"viewBox='0 0 {LEFT + WIDTH + RIGHT} {height}' width='{LEFT + WIDTH + RIGHT}' height='{height}'"
    body = "\n".join(parts)
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>\n<rect width='100%' height='100%' fill='white'/>\n{body}\n</svg>\n"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {FONT}>{escape(words)}</text>"


def _concurrency(series: Series, top: int) -> Iterator[str]:
    """Yield the panel of the concurrency: for each column of pixels the range of its steps, and the line of their means."""
    highest = max(*series.levels, 1)
    columns = tuple(_columns(series.levels))
    path = " ".join(
        f"M{LEFT + x:.1f} {top + HEIGHT * (1 - low / highest):.1f}V{top + HEIGHT * (1 - high / highest):.1f}"
        for x, low, _, high in columns
    )
    line = " ".join(f"{LEFT + x:.1f},{top + HEIGHT * (1 - mean / highest):.1f}" for x, _, mean, _ in columns)
    yield f"<path d='{path}' stroke='#c8d3dc' stroke-width='1.2' fill='none'/>"
    yield f"<polyline points='{line}' stroke='#33475b' stroke-width='1.2' fill='none'/>"
    yield f"<path d='M{LEFT} {top}V{top + HEIGHT}H{LEFT + WIDTH}' stroke='#888888' fill='none'/>"
    yield _text(LEFT - 8, top + 12, f"{highest:g}", "end")
    yield _text(LEFT - 8, top + HEIGHT, "0", "end")
    yield _text(LEFT - 8, top + HEIGHT / 2, "requests at the server", "end")


def _columns(levels: Sequence[float]) -> Iterator[tuple[float, float, float, float]]:
    """Yield x, lowest, mean and highest level of as many columns as there are pixels, or steps where those are fewer."""
    count = min(WIDTH, len(levels))
    for column in range(count):
        part = levels[column * len(levels) // count : (column + 1) * len(levels) // count]
        yield WIDTH * (column + 0.5) / count, min(part), sum(part) / len(part), max(part)


def _axis(frame: _Frame, top: int, bottom: int) -> Iterator[str]:
    """Yield marks of time through the panel and all bands, and what they are."""
    apart, unit, name = next((step for step in STEPS if frame.span_s / step[0] <= MOST_MARKS), STEPS[-1])
    apart *= max(1, -int(-frame.span_s // (apart * MOST_MARKS)))
    for mark in range(int(frame.span_s // apart) + 1):
        x = frame.x(mark * apart)
        yield f"<path d='M{x:.1f} {top}V{bottom}' stroke='#e3e3e3' fill='none'/>"
        yield _text(x, top + HEIGHT + LINE - 2, f"{mark * apart / unit:g} {name}", "middle")


def _band(frame: _Frame, row: Row, y: int) -> Iterator[str]:
    """Yield a policy's name and the modes that it served with."""
    yield _text(LEFT - 8, y + BAND - 4, row.name, "end")
    for begin, end, mode in _dominant(frame, row.spans):
        place = f"x='{LEFT + begin}' y='{y}' width='{end - begin}' height='{BAND}'"
        yield f"<rect {place} fill='{frame.colours[mode]}'/>"


def _dominant(frame: _Frame, spans: Sequence[Span]) -> Iterator[tuple[int, int, Mode | None]]:
    """Yield (first, last column, mode) where each column of pixels has the mode that most of its time went to."""
    spent: list[dict[Mode | None, float]] = [{} for _ in range(WIDTH)]
    for begin, end, mode in spans:
        first, last = frame.x(begin) - LEFT, frame.x(end) - LEFT
        for column in range(int(first), min(WIDTH, int(last) + 1)):
            part = min(last, column + 1) - max(first, column)
            spent[column][mode] = spent[column].get(mode, 0.0) + part
    before: Mode | None = None
    since = 0
    for column, parts in enumerate(spent):
        mode = max(parts, key=lambda each: parts[each]) if parts else before
        if column and mode != before:
            yield since, column, before
            since = column
        before = mode
    yield since, WIDTH, before


def _legend(entries: Mapping[str, str], y: int) -> Iterator[str]:
    """Yield a patch and a name for each colour, three in a row."""
    for place, (name, colour) in enumerate(entries.items()):
        x = LEFT + place % 3 * (WIDTH / 3)
        line = y + place // 3 * LINE
        yield f"<rect x='{x:.1f}' y='{line - 10}' width='12' height='12' fill='{colour}'/>"
        yield _text(x + 18, line, name)
