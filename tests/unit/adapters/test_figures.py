"""Drawn figures: the file that was asked for, the same each time, and refused early where it cannot be."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from specctl.adapters import figures
from specctl.errors import UsageError
from specctl.measure.figure import Band, Figure, Line, Look, Mark, Panel, Point, Span

LINES = Panel(
    x_label="concurrency",
    y_label="tokens/s",
    x_log=True,
    lines=(
        Line(label="dflash", points=tuple(Point(x=x, y=50.0 * x, low=48.0 * x, high=51.0 * x) for x in (1, 2, 4))),
        Line(label="none", points=(Point(x=1, y=20.0), Point(x=4, y=70.0)), look=Look.STEPS),
    ),
    marks=(Mark(x=2.5, text="crossover", low=2.0, high=3.0),),
)
BANDS = Panel(
    x_label="minutes",
    bands=(Band(name="agent", spans=(Span(start=0, end=3, label="none"), Span(start=3, end=5, label="dflash"))),),
)
FIGURE = Figure(title="A figure", panels=(LINES, BANDS), note="lab, 2 runs")


@pytest.mark.parametrize(("ending", "first"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".SVG", b"<?xml")])
def test_a_figure_becomes_the_kind_of_file_its_name_says(tmp_path: Path, ending: str, first: bytes) -> None:
    """The ending decides the format, in either case of letters."""
    path = tmp_path / f"figure{ending}"
    figures.draw(FIGURE, path)
    assert path.read_bytes().startswith(first)


def test_the_same_figure_is_the_same_file() -> None:
    """No date and no chance enter a file, so that a committed plot changes when its figures do."""
    assert figures.content(FIGURE, "svg") == figures.content(FIGURE, "svg")


def test_a_label_keeps_its_colour_in_every_panel() -> None:
    """An algo is drawn in one colour, as a line here and as a band there."""
    drawn = ET.fromstring(figures.content(FIGURE, "svg"))
    strokes = [element.get("style", "") for element in drawn.iter("{http://www.w3.org/2000/svg}path")]
    assert any(f"stroke: {figures.COLOURS[0]}" in style for style in strokes)
    assert any(f"fill: {figures.COLOURS[0]}" in style for style in strokes)
    assert any(f"fill: {figures.COLOURS[1]}" in style for style in strokes)


def test_a_course_is_shaded_between_its_bounds_and_fills_its_axes() -> None:
    """A line that is joined alone shows its range as a shade in its colour, of exactly its points with bounds."""
    points = (Point(x=0, y=1.0, low=0.5, high=2.0), Point(x=1, y=1.0), Point(x=2, y=2.0, low=1.0, high=3.0))
    line = Line(label="load", points=points, look=Look.PLAIN)
    drawn = ET.fromstring(figures.content(Figure(title="t", panels=(Panel(x_label="h", lines=(line,)),)), "svg"))
    styles = [element.get("style", "") for element in drawn.iter()]
    assert len([style for style in styles if f"fill: {figures.COLOURS[0]}; fill-opacity: 0.25" in style]) == 1


@pytest.mark.parametrize("name", ["figure", "figure.jpg", "gone/figure.svg"])
def test_what_cannot_be_drawn_is_refused_before_it_is_measured(tmp_path: Path, name: str) -> None:
    """Another ending, or a folder that is not there, is found before an hour of measuring."""
    with pytest.raises(UsageError):
        figures.refuse_other(tmp_path / name)


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """A folder in the file's place is an error with its path, and no half file stays."""
    (tmp_path / "figure.svg").mkdir()
    with pytest.raises(UsageError, match=r"figure\.svg"):
        figures.draw(FIGURE, tmp_path / "figure.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]
