"""docs/ab.md shows what the code prints, and docs/json.md has the fields of an experiment."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.measure import ab_confounders
from specctl.measure.ab_diff import Deviation
from specctl.measure.ab_result import as_wire, conclude
from specctl.ui import ab
from specctl.ui.theme import console
from tests.abtrials import trial
from tests.unit.measure import test_ab_soak
from tests.unit.test_docs_json import hold

PAGE = Path(__file__).parents[2] / "docs" / "ab.md"
WIDTH = 100
WHOLE = trial((110.4, 110.9, 110.1, 110.6), (110.2, 110.7, 110.8, 110.3))
OTHER = Deviation(kind="flag", name="--page-size", a="64", b="1", origin="command line")


def shown(view: object) -> str:
    """Return what a console shows."""
    out = io.StringIO()
    console(file=out, width=WIDTH).print(view)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")


def block(mark: str) -> str:
    """Return the block behind a mark."""
    (found,) = re.findall(rf"<!-- {mark} -->\n```\n(.*?)\n?```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def test_the_plan_is_what_the_command_shows() -> None:
    """The page's plan is that of a trial on a host whose loads take eight minutes."""
    empty = replace(WHOLE, segments=())
    assert block("plan") == shown(ab.plan_view(empty, ab.cost_text(9, 480.0, 600.0), width=WIDTH))


def test_the_result_is_what_the_command_shows() -> None:
    """The page's result is that of the same trial, measured."""
    assert block("result") == shown(ab.result_view(conclude(WHOLE), width=WIDTH))


def test_every_confounder_is_on_the_page() -> None:
    """The table has each confounder that is judged, and no other."""
    text = PAGE.read_text(encoding="utf-8").partition("| confounder |")[2]
    rows = re.findall(r"^\| ([^|]+) \|", text.partition("\n\n")[0], re.MULTILINE)
    judged = conclude(WHOLE).confounders
    assert [row for row in rows if row != "---"] == [each.name for each in judged]
    assert len(judged) == len(ab_confounders.CHECKS)


def test_the_stated_power_is_the_tested_one() -> None:
    """The spreads and cycles that the page states are those that the soak holds."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert test_ab_soak.STATED == ((0.02, 3), (0.03, 5))
    assert "with three cycles where a segment spreads by 2 %, with five where it spreads by 3 %" in text


def first(rows: object) -> Mapping[str, object]:
    """Return the first object of a list."""
    assert isinstance(rows, list)
    assert isinstance(rows[0], Mapping)
    return rows[0]


FULL = as_wire(conclude(replace(WHOLE, beside=(OTHER,), exact=True)))
BARE = as_wire(conclude(replace(WHOLE, named=None)))
PLAN = ab.plan_wire(WHOLE, 9, 480.0, 600.0)
WIDE = as_wire(conclude(trial((96.0, 121.0, 104.0, 117.0), (99.0, 111.0, 123.0, 95.0))))
NOTED = {**first(FULL["arms"]), "note": "A with what ddtree implies"}


@pytest.mark.parametrize(
    ("heading", "bare", "full"),
    [
        ("Ab", BARE, FULL),
        ("AbPlan", ab.plan_wire(replace(WHOLE, named=None), 9, None, 600.0), PLAN),
        ("AbArm", first(FULL["arms"]), NOTED),
        ("AbVerdict", first(FULL["verdicts"]), first(WIDE["verdicts"])),
        ("AbCompared", {**first(FULL["compared"]), "p_family": None}, first(FULL["compared"])),
        ("Deviation", {**first(FULL["beside"]), "a": None, "b": None}, first(FULL["beside"])),
        ("Confounder", first(FULL["confounders"]), first(FULL["confounders"])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fields_are_documented(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """The table has the object's fields, and says `or null` of exactly those that can be null."""
    hold(heading, bare, full)
