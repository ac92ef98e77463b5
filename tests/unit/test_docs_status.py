"""docs/status.md and its picture show what `specctl status` shows."""

from __future__ import annotations

import html
import re
from pathlib import Path

from typer.testing import CliRunner

from specctl.cli.main import app, mount

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
GOLDEN = (ROOT / "tests" / "golden" / "status-140.txt").read_text(encoding="utf-8")


def test_the_picture_shows_the_golden_table() -> None:
    """docs/images/status.svg has the words of the golden table, in its order, and loads nothing from elsewhere."""
    svg = (ROOT / "docs" / "images" / "status.svg").read_text(encoding="utf-8")
    shown = " ".join(html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)).split()
    wanted = GOLDEN.split()
    begin = shown.index("HOST")
    assert shown[begin : begin + len(wanted)] == wanted
    assert not re.search(r"url\([\"']?http|href=[\"']http", svg)


def test_the_page_shows_the_golden_table() -> None:
    """The example of the page is the golden table of 140 columns."""
    block = PAGE.partition("    $ specctl status --all\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in block.splitlines()] == [line.strip() for line in GOLDEN.splitlines()]


def test_the_page_names_every_option() -> None:
    """What the command can be told beside the selection is explained."""
    mount()
    told = CliRunner().invoke(app, ["status", "--help"]).stdout
    own = set(re.findall(r"--[a-z]+", told)) - {
        "--inventory",
        "--host",
        "--group",
        "--exclude",
        "--server",
        "--all",
        "--help",
    }
    assert own == {option for option in ("--watch", "--interval", "--json") if option in PAGE}
