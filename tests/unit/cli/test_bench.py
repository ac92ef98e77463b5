"""`specctl bench` and its group on this machine alone: both kinds of call, what is kept, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from specctl.adapters import runs
from specctl.cli import main
from specctl.errors import UsageError
from specctl.ops import bench as benches
from tests.unit.measure.benches import SETTING, bench


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    main.mount()


def call(*words: str) -> Result:
    """Run specctl in this process."""
    return CliRunner().invoke(main.app, ["bench", *words], standalone_mode=False)


def kept(**over: Any) -> str:
    """Keep a bench under an id of its own."""
    made = bench(id=runs.new_id("bench"), **over)
    benches.keep(made)
    return made.id


def test_help_shows_both_kinds_of_call() -> None:
    """The group's help has the options of a measurement and the commands beside it."""
    text = call("--help").output
    assert all(word in text for word in ("--concurrency", "--tokens", "--dry-run", "list", "show", "compare"))
    assert "BENCH" in call("show", "--help").output


def test_list_names_what_is_kept_and_what_is_damaged() -> None:
    """Good ones are listed, damaged ones named on standard error, and neither hides the other."""
    name = kept()
    broken = runs.folder() / f"{runs.new_id('bench')}.json"
    broken.write_text("{half")
    found = call("list")
    assert name in found.stdout
    assert str(broken) in found.stderr
    wire = json.loads(call("list", "--json").stdout)
    assert [each["id"] for each in wire["benches"]] == [name]
    assert len(wire["faults"]) == 1


def test_list_of_nothing_says_how_to_begin() -> None:
    """An empty list is no error."""
    found = call("list")
    assert (found.exception, found.stdout) == (None, "")
    assert "specctl bench --host H" in found.stderr


def test_show_is_the_last_one_and_draws_it(tmp_path: Path) -> None:
    """Without a name the newest is shown; a plot is drawn of it."""
    kept(note="older")
    kept(note="the newest")
    picture = tmp_path / "bench.svg"
    found = call("show", "--plot", str(picture))
    assert found.exception is None
    assert "the newest" in found.stdout
    assert picture.read_text().startswith("<?xml")


def test_compare_shows_figures_and_refuses_unlike_benches() -> None:
    """Like benches are compared; other lengths are refused with why, and shown with --anyway."""
    kept()
    kept(speeds=(120.0, 121.0, 122.0))
    assert "better" in call("compare").stdout
    kept(setting=replace(SETTING, tokens=64))
    refused = call("compare")
    assert isinstance(refused.exception, UsageError)
    assert "other lengths (512 and 64 tokens)" in refused.exception.message
    assert "refused  the answers have other lengths" in call("compare", "--anyway").stdout


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("--host", "x", "list"), UsageError),
        (("--tokens", "5", "list"), UsageError),
        (("--json", "list"), UsageError),
        (("--concurrency", "0"), UsageError),
        (("--concurrency", "1", "--rate", "1"), UsageError),
        (("--plot", "x.pdf"), UsageError),
        (("--prompts", "none.jsonl"), UsageError),
        (("show", "nothing"), UsageError),
        (("compare", "a", "b"), UsageError),
        (("--host", "x", "--yes"), UsageError),
        (("--runs", "0"), typer.BadParameter),
        (("nonsense",), typer.TyperException),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_reached(
    words: tuple[str, ...], kind: type[Exception]
) -> None:
    """Each is one error of a known kind."""
    assert isinstance(call(*words).exception, kind)
