"""The drawing of a simulation: well-formed whatever is in it, and its bands where the modes were."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from specctl.control.objective import Objective
from specctl.control.replay import compare, ours
from specctl.control.replay.compare import Row, Setting
from specctl.control.replay.load import Series
from specctl.control.replay.outage import Outage
from specctl.ui import simulate_plot as plot
from tests.unit.control.replay.loads import CHAIN, NONE, SERVICE, TREE

SVG = "{http://www.w3.org/2000/svg}"
SETTING = Setting(service=SERVICE, objective=Objective(), outage=Outage(seconds=5.0, drains=True), start=TREE)


def drawn(levels: list[float], *rows: Row, title: str = "title") -> ET.Element:
    """Return the drawing of rows over a series, read as XML."""
    series = Series(step_s=1.0, levels=levels)
    found = compare.compare(SETTING, series, ours.maker, compare.statics(SETTING, series))
    shown = [replace(found.rows[-1], policy=row.policy, spans=row.spans) for row in rows] or found.rows
    return ET.fromstring(plot.svg(found, shown, title=title))


def words(root: ET.Element) -> list[str]:
    """Return all text of a drawing."""
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def bands(root: ET.Element) -> list[tuple[int, int, str]]:
    """Return each band's first and last column of pixels and its colour."""
    found = [element.attrib for element in root.iter(f"{SVG}rect") if element.get("height") == str(plot.BAND)]
    return [(int(at["x"]) - plot.LEFT, int(at["x"]) - plot.LEFT + int(at["width"]), at["fill"]) for at in found]


def row(*spans: compare.Span) -> Row:
    """Return a row of a policy that did that."""
    series = Series(step_s=1.0, levels=[1])
    return replace(compare.statics(SETTING, series)[0], policy="mine", mode=None, spans=spans)


def test_bands_are_where_the_modes_were() -> None:
    """Half of the time in one mode, an eighth away, the rest in another: so are the band's pixels."""
    root = drawn([1] * 80, row((0.0, 40.0, TREE), (40.0, 50.0, None), (50.0, 80.0, NONE)))
    tree, away, none = plot.COLOURS[2], plot.AWAY, plot.COLOURS[0]
    assert bands(root) == [(0, 380, tree), (380, 475, away), (475, 760, none)]


def test_a_pixel_has_the_mode_that_it_mostly_was() -> None:
    """Where more happens than there are pixels, each shows what most of its time went to."""
    spans = [span for at in range(0, 7600, 10) for span in ((at, at + 9.0, TREE), (at + 9.0, at + 10.0, CHAIN))]
    root = drawn([1] * 7600, row(*((float(begin), end, mode) for begin, end, mode in spans)))
    assert bands(root) == [(0, 760, plot.COLOURS[2])]


def test_static_modes_have_no_band_but_a_colour() -> None:
    """The legend names every mode and switching; bands are those of policies that decide."""
    found = words(drawn([1, 4, 8] * 100))
    assert {"none", "dflash", "ddtree:tree_budget=16", "switching", "threshold", "agent", "clairvoyant"} <= set(found)
    assert found.count("none") == 1


@pytest.mark.parametrize(
    ("span_s", "marks"),
    [
        (30, ["0 min"]),
        (3600, ["0 min", "10 min", "20 min"]),
        (86_400, ["0 h", "3 h", "6 h"]),
        (14 * 86_400, ["0 d", "2 d", "4 d"]),
    ],
)
def test_time_is_marked_in_units_that_fit(span_s: int, marks: list[str]) -> None:
    """At most ten or so marks, in minutes, hours or days."""
    step = max(1, span_s // 2000)
    series = Series(step_s=float(step), levels=[1.0] * (span_s // step))
    found = compare.compare(SETTING, series, ours.maker, compare.statics(SETTING, series))
    text = words(ET.fromstring(plot.svg(found, found.rows, title="t")))
    shown = [word for word in text if word.split()[-1] in {"min", "h", "d"} and word[0].isdigit()]
    assert shown[: len(marks)] == marks
    assert len(shown) <= 12


def test_what_a_file_is_called_breaks_no_drawing() -> None:
    """A name with marks of XML in it is shown as it is."""
    root = drawn([0.0, 0.0], title="<a & b>\nsecond 'line'")
    assert words(root)[:2] == ["<a & b>", "second 'line'"]
