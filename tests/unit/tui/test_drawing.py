"""The small pieces that frames are made of: figures in words, bars, charts, columns that fit, lines beside each other."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from specctl.control.sight_past import Past
from specctl.tui import charts, spark, words
from specctl.tui.columns import BY_KEY, COLUMNS, GAP, fitting
from specctl.tui.glyphs import INSTEAD, LEVELS, ascii_text
from specctl.tui.layout import beside, folded, labelled, packed, rule, text
from specctl.tui.rowtext import fitted
from specctl.tui.svg import FONTS, self_contained
from specctl.ui.text import UNKNOWN
from tests.unit.tui import world


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, UNKNOWN),
        (float("nan"), UNKNOWN),
        (float("inf"), UNKNOWN),
        (0.0, "0.0"),
        (2.31, "2.3"),
        (318.24, "318.2"),
        (12_040.0, "12040"),
        (123_456.0, "123.5k"),
        (2.5e6, "2.5M"),
        (7e9, "7.0G"),
        (1e15, "1e+15"),
    ],
)
def test_a_figure_fits_its_cell(value: float | None, shown: str) -> None:
    """A figure keeps its size in view in at most seven cells; what is no figure is —."""
    assert (words.figure(value), len(words.figure(value)) <= 7) == (shown, True)


def test_units_are_said() -> None:
    """Shares, watts, memory, degrees and ages carry their unit, and are — where they are unknown."""
    assert [words.percent(0.126), words.watts(212.4), words.watts(23_400.0), words.celsius(71.0)] == [
        "13 %",
        "212 W",
        "23.4 kW",
        "71 °C",
    ]
    assert [words.gigabytes(9.5e9), words.gigabytes(78e9), words.ago(0.44), words.ago(128.0)] == [
        "9.5",
        "78",
        "0.4 s",
        "2 min",
    ]
    unknown = [words.percent(None), words.watts(None), words.celsius(None), words.gigabytes(None), words.ago(None)]
    assert unknown == [UNKNOWN] * 5


def test_only_fresh_figures_stand_for_now() -> None:
    """A stale figure may be shown, and is in no sum."""
    old = world.told(611.0, 128.0)
    assert (words.fresh(old), words.shown(old), words.fresh(world.told(3.0)), words.fresh(None)) == (
        None,
        611.0,
        3.0,
        None,
    )


def test_a_line_of_bars() -> None:
    """Zero is the lowest bar, the top the highest, and unknown a blank; the newest stands at the right."""
    assert spark.line((0.0, 50.0, None, 100.0), 6) == "  ▁▄ █"
    assert spark.line((), 3) == "   "
    assert spark.line((5.0,), 1, top=10.0) == "▄"


def test_many_points_share_a_cell() -> None:
    """More points than cells are means of neighbours, and no point is left out; unknown ones are left out of a mean."""
    assert spark.squeezed((1.0, 3.0, None, 5.0, None, None), 3) == [2.0, 5.0, None]


@given(
    series=st.lists(st.none() | st.floats(min_value=0, max_value=1e6), max_size=300),
    width=st.integers(0, 80),
    height=st.integers(1, 8),
)
def test_a_chart_is_a_rectangle(series: list[float | None], width: int, height: int) -> None:
    """Any series makes lines of one width out of bars and blanks, and a blank column only where nothing is known."""
    drawn = spark.chart(series, width, height)
    assert [len(line) for line in drawn] == [width] * height
    assert set("".join(drawn)) <= {*LEVELS, " "}
    for place, value in enumerate(spark.squeezed(series, width)):
        assert (drawn[-1][place] == " ") == (value is None)


def test_what_waits_stands_on_what_runs() -> None:
    """The chart of requests shows both, with different signs, and says its scale and its span."""
    sight = world.ready("a", running=world.count(4), waiting=world.count(4))
    past = Past(period_s=1.0, running=(4.0,) * 8, waiting=(4.0,) * 8, tokens_per_s=(1.0,) * 8)
    lines = [line.plain for line in charts.requests(sight, past, 60, 4)]
    assert "4 running, 4 queued" in lines[0]
    assert "last 8 s" in lines[0]
    assert [line[-1] for line in lines[1:]] == ["▒", "▒", "█", "█"]
    assert lines[1].startswith("    8.0│")


def test_a_gpu_line_says_what_slows_it() -> None:
    """Each GPU has its load, memory, power, temperature and clock; a fault is named, and unknown is —."""
    lines = [line.plain for line in charts.gpus(world.HOT, world.past_of(world.HOT), 130)]
    assert "8 GPUs  RTX PRO 6000" in lines[0]
    assert "slowed: hw thermal" in lines[8]
    assert ["93 °C" in lines[8], "78/96 GB" in lines[1], "212/600 W" in lines[1]] == [True] * 3
    bare = world.ready(
        "a", gpus=(world.gpu(0, busy_ratio=None, memory_used_bytes=None, power_w=None, temperature_c=None),)
    )
    line = charts.gpus(bare, Past(period_s=1.0), 100)[1].plain
    assert (line.count(UNKNOWN), "0 %" in line) == (4, False)


@given(width=st.integers(20, 300), widths=st.dictionaries(st.sampled_from(list(BY_KEY)), st.integers(0, 60)))
def test_columns_fit_and_the_most_important_stay(width: int, widths: dict[str, int]) -> None:
    """Columns never leave the screen or lie on each other; a column goes only if all that matter less are gone."""
    places = fitting(widths, width)
    for place, after in pairwise(places):
        assert place.start + place.width + GAP == after.start
    if len(places) > 1:
        assert places[-1].start + places[-1].width <= width
    least_kept = min(place.column.keep for place in places)
    shown = {place.column.key for place in places}
    assert all(column.keep < least_kept for column in COLUMNS if column.key not in shown)


def test_eighty_columns_keep_what_matters() -> None:
    """At 80 columns host, algo, state, requests, tokens, accept length and age are there."""
    wanted = {"host": 6, "algo": 10, "state": 17, "age": 6}
    assert [place.column.title for place in fitting(wanted, 78)] == [
        "HOST",
        "ALGO",
        "STATE",
        "RUN",
        "QUEUE",
        "TOK/S",
        "ACCEPT",
        "AGE",
    ]


def test_every_title_is_there_at_250() -> None:
    """At 250 columns no column is missing."""
    assert len(fitting({}, 248)) == len(COLUMNS)


@given(said=st.text(max_size=60), width=st.integers(1, 30), right=st.booleans())
def test_fitted_is_as_wide_as_asked(said: str, width: int, right: bool) -> None:
    """Any text, wide signs included, is cut or filled to the cell."""
    assert cell_len(fitted(words.one_line(said), width, right=right)) == width


def test_parts_go_by_importance() -> None:
    """A line that is too long loses the parts that matter least, and never what stands at its right."""
    parts = [(3, text("first")), (1, text("second")), (2, text("third"))]
    assert packed(parts, 60, text("12:00")).plain == "first  ·  second  ·  third" + " " * 29 + "12:00"
    assert packed(parts, 28, text("12:00")).plain == "first  ·  third        12:00"
    assert packed(parts, 12, text("12:00")).plain == "first  12:00"


def test_lines_are_put_together() -> None:
    """A rule spans the width, a label its text, a long log line goes on set in, and two columns stand beside each other."""
    assert rule("load", 20, "note").plain == "─ load ────── note ─"
    assert [line.plain for line in labelled("because", "a b c d e f", 22)] == [" because    a b c d e", "            f"]
    assert [line.plain for line in folded("abcdefghijklmnopqrstuvwx", 20)] == [" abcdefghijklmnopqrs", "     tuvwx"]
    assert [line.plain for line in beside([text("a")], [text("b"), text("c")], 4)] == ["a      b", "       c"]


@given(said=st.text(max_size=80), width=st.integers(8, 40))
def test_folding_loses_nothing(said: str, width: int) -> None:
    """All of a long line is in its pieces, in order, but for blanks at their ends; each piece fits."""
    shown = words.one_line(said)
    pieces = [line.plain for line in folded(shown, width)]
    assert "".join("".join(piece.split()) for piece in pieces) == "".join(shown.split())
    assert all(cell_len(piece) <= width for piece in pieces)


@given(said=st.text(max_size=60))
def test_ascii_is_as_wide(said: str) -> None:
    """What a terminal without UTF-8 gets is ASCII of the same width."""
    shown = words.one_line(said)
    plain = ascii_text(shown)
    assert (plain.isascii(), len(plain)) == (True, cell_len(shown))


def test_each_sign_has_one_stand_in() -> None:
    """Every sign that we draw has a stand-in of one cell in ASCII."""
    assert {sign: len(other) for sign, other in INSTEAD.items()} == dict.fromkeys(INSTEAD, 1)
    assert set(INSTEAD) >= {*LEVELS, "—", "…", "▲", "▼", "·", "×", "°", "│", "─", "━", "▒"}


def test_a_picture_fetches_nothing() -> None:
    """Web fonts go, and every text keeps a monospaced one."""
    face = '@font-face { src: url("https://a.example/f.woff") }'
    svg = f"{face}\n.m {{ font-family: Fira Code, monospace; }}\n.t {{ font-family: arial; }}"
    assert self_contained(svg).count(FONTS) == 2
    assert "https" not in self_contained(svg)
