"""Draw figures as PNG or SVG files, by matplotlib; called by ops that were asked for a plot, and imported only then.

The same figure gives the same file: no date, no chance in names.
"""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, ScalarFormatter

from specctl.adapters import lasting
from specctl.errors import UsageError
from specctl.measure.figure import Figure, Line, Look, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which are told apart with any kind of sight; more labels than colours begin anew.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a200", "#8c6bb1")
INK, FAINT = "#333333", "#dddddd"
WIDTH_IN, PANEL_IN, BAND_IN, HEAD_IN = 7.6, 2.6, 0.3, 0.9
DOTS_PER_IN = 150
TITLE_CHARS = 80
MOST_TICKS = 12
FORMATS = (".png", ".svg")
# Courses over time fill their axes from end to end, with ticks that hours and minutes have too.
COURSES = (Look.PLAIN, Look.STEPS)


def refuse_other(path: Path) -> None:
    """Raise UsageError where a file of that name cannot be drawn; called before anything is measured for it."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a plot is a file that ends in {' or '.join(FORMATS)}", hint="--plot figure.svg")
    lasting.refuse_place(path)


def draw(figure: Figure, path: Path) -> None:
    """Write the figure to a file; raises UsageError where its name has another ending, or it cannot be written."""
    refuse_other(path)
    lasting.write(path, content(figure, path.suffix.lower().removeprefix(".")), hint="name another file")


def content(figure: Figure, form: str) -> bytes:
    """Return the figure as the bytes of a `png` or `svg` file."""
    with mpl.rc_context(
        {
            "svg.hashsalt": "specctl",
            "svg.fonttype": "path",
            "font.size": 9,
            "axes.edgecolor": INK,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    ):
        rows = -(-len(figure.panels) // figure.across)
        heights = [_height(figure.panels[row * figure.across]) for row in range(rows)]
        canvas = Canvas(figsize=(WIDTH_IN, sum(heights) + HEAD_IN), layout="constrained")
        canvas.suptitle(textwrap.fill(figure.title, TITLE_CHARS), x=0.02, ha="left", fontsize=11, fontweight="bold")
        grid = canvas.subplots(rows, figure.across, squeeze=False, gridspec_kw={"height_ratios": heights})
        colours = _colours(figure)
        for axes, panel in zip(grid.flat, figure.panels, strict=False):
            _fill(axes, panel, colours)
        for axes in list(grid.flat)[len(figure.panels) :]:
            axes.set_visible(False)
        if figure.note:
            canvas.supxlabel(figure.note, x=0.02, ha="left", fontsize=7)
        written = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        canvas.savefig(written, format=form, dpi=DOTS_PER_IN, metadata=metadata)
        return written.getvalue()


def _height(panel: Panel) -> float:
    return PANEL_IN if panel.lines or not panel.bands else BAND_IN * len(panel.bands) + 0.7


def _colours(figure: Figure) -> dict[str, str]:
    labels: dict[str, None] = {}
    for panel in figure.panels:
        labels.update(dict.fromkeys(line.label for line in panel.lines))
    for panel in figure.panels:
        labels.update(dict.fromkeys(span.label for band in panel.bands for span in band.spans))
    return {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(labels)}


def _fill(axes: Axes, panel: Panel, colours: dict[str, str]) -> None:
    axes.set_title(panel.title, loc="left", fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    for line in panel.lines:
        _line(axes, line, colours[line.label])
    for row, band in enumerate(panel.bands):
        for span in band.spans:
            axes.barh(row, span.end - span.start, left=span.start, height=0.7, color=colours[span.label])
    if panel.bands:
        axes.set_yticks(range(len(panel.bands)), [band.name for band in panel.bands])
        axes.invert_yaxis()
    else:
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
    _marks(axes, panel)
    if panel.bands or any(line.look in COURSES for line in panel.lines):
        axes.margins(x=0)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 3, 6, 10]))
    if panel.lines and panel.y_from_zero:
        axes.set_ylim(bottom=0.0)
    if panel.x_log:
        _doubling(axes, panel)
    _legend(axes, panel, colours)


def _line(axes: Axes, line: Line, colour: str) -> None:
    xs, ys = [point.x for point in line.points], [point.y for point in line.points]
    low = [point.y - point.low if point.low is not None else 0.0 for point in line.points]
    high = [point.high - point.y if point.high is not None else 0.0 for point in line.points]
    marks = "o" if line.look in (Look.JOINED, Look.MARKS) else ""
    joined = "" if line.look is Look.MARKS else "-"
    style = "steps-post" if line.look is Look.STEPS else "default"
    axes.plot(xs, ys, marker=marks, markersize=3.5, linestyle=joined, linewidth=1.4, color=colour, drawstyle=style)
    if line.look is Look.PLAIN:
        _shade(axes, line, colour)
    elif any(low) or any(high):
        bars = [[max(0.0, each) for each in low], [max(0.0, each) for each in high]]
        axes.errorbar(xs, ys, yerr=bars, fmt="none", ecolor=colour, elinewidth=1.0, capsize=2.5)


def _shade(axes: Axes, line: Line, colour: str) -> None:
    """Shade between the bounds of a line whose points stand close: bars would hide it."""
    bounded = [(point.x, point.low, point.high) for point in line.points if None not in (point.low, point.high)]
    if bounded:
        xs, low, high = zip(*bounded, strict=True)
        axes.fill_between(xs, low, high, color=colour, alpha=0.25, linewidth=0)


def _marks(axes: Axes, panel: Panel) -> None:
    for mark in panel.marks:
        if mark.low is not None and mark.high is not None:
            axes.axvspan(mark.low, mark.high, color=INK, alpha=0.08, linewidth=0)
        axes.axvline(mark.x, color=INK, linewidth=0.9, linestyle=":")
        axes.annotate(
            mark.text, (mark.x, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -3), textcoords="offset points",
            va="top", fontsize=7.5,
        )  # fmt: skip


def _doubling(axes: Axes, panel: Panel) -> None:
    axes.set_xscale("log", base=2)
    places = sorted({point.x for line in panel.lines for point in line.points})
    if len(places) <= MOST_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())


def _legend(axes: Axes, panel: Panel, colours: dict[str, str]) -> None:
    shown = dict.fromkeys(line.label for line in panel.lines)
    shown.update(dict.fromkeys(span.label for band in panel.bands for span in band.spans))
    handles = [axes.plot([], [], color=colours[label], linewidth=3, label=label)[0] for label in shown]
    if len(handles) > 1:
        axes.legend(handles=handles, fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
