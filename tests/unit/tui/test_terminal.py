"""The terminal is judged: refused where nothing can be drawn, else drawn with what it has."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest

from specctl.errors import UsageError
from specctl.tui import terminal
from specctl.tui.palette import DARK, LIGHT, PALETTES, PLAIN, SIXTEEN, THEMES, Palette


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("term", ["", "dumb", "unknown"])
def test_a_terminal_that_cannot_draw_is_refused(term: str) -> None:
    """TERM=dumb, and none at all, end with what to use instead."""
    with pytest.raises(UsageError) as caught:
        terminal.require({"TERM": term}, Screen(), Screen())
    assert "specctl status --watch" in (caught.value.hint or "")


def test_a_pipe_is_refused() -> None:
    """Where one of the streams is no terminal, nothing is drawn."""
    with pytest.raises(UsageError, match="this is none"):
        terminal.require({"TERM": "xterm"}, Screen(), io.StringIO())
    terminal.require({"TERM": "xterm"}, Screen(), Screen())


RICH = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("environ", "wanted", "light", "palette"),
    [
        (RICH, "auto", None, DARK),
        (RICH, "auto", True, LIGHT),
        (RICH, "auto", False, DARK),
        ({**RICH, "COLORFGBG": "0;15"}, "auto", None, LIGHT),
        ({**RICH, "COLORFGBG": "15;0"}, "auto", None, DARK),
        ({**RICH, "COLORFGBG": "0;15"}, "auto", False, DARK),
        (RICH, "light", False, LIGHT),
        (RICH, "dark", True, DARK),
        ({**RICH, "NO_COLOR": "1"}, "light", True, PLAIN),
        ({"TERM": "linux"}, "auto", None, SIXTEEN),
        ({"TERM": "vt220", "COLORTERM": "truecolor"}, "auto", None, DARK),
        ({"TERM": "xterm-kitty"}, "auto", None, DARK),
    ],
)
def test_the_palette_is_what_the_terminal_can(
    environ: Mapping[str, str], wanted: str, light: bool | None, palette: Palette
) -> None:
    """NO_COLOR wins over all, sixteen colours over a theme, and what the terminal says over what the environment does."""
    assert terminal.palette_for(environ, wanted, light=light) is palette


@pytest.mark.parametrize(
    ("said", "light"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;c", True),
        (b"\x1b]11;rgb:1212/1616/1a1a\x07", False),
        (b"\x1b]11;rgb:fd/f6/e3\x07", True),
        (b"\x1b[?6c", None),
        (b"", None),
        (b"\x1b]11;rgb:zz/1/2\x07", None),
    ],
)
def test_the_terminals_answer_is_read(said: bytes, light: bool | None) -> None:
    """A background near white is light, whatever the number of digits; no colour in the answer is no answer."""
    assert terminal.light_of(said) is light


@pytest.mark.parametrize(
    ("term", "encoding", "ascii_only"),
    [
        ("xterm", "utf-8", False),
        ("xterm", "UTF8", False),
        ("xterm", "ascii", True),
        ("xterm", "latin-1", True),
        ("xterm", None, True),
        ("linux", "utf-8", True),
    ],
)
def test_ascii_where_more_is_not_drawn(term: str, encoding: str | None, ascii_only: bool) -> None:
    """Without UTF-8, and on Linux' own console, all is drawn in ASCII."""
    assert terminal.ascii_only({"TERM": term}, encoding) is ascii_only


def test_each_palette_names_the_same_styles() -> None:
    """No palette lacks a name that another has, and each has its theme."""
    names = set(DARK.styles)
    assert {palette.theme: set(palette.styles) ^ names for palette in PALETTES.values()} == {
        theme: set() for theme in THEMES
    }


def test_without_colour_there_is_none() -> None:
    """The palette for NO_COLOR holds no colour at all, and still tells the cursor from other lines."""
    assert all(style.color is None and style.bgcolor is None for style in PLAIN.styles.values())
    assert PLAIN.style("cursor").reverse is True
