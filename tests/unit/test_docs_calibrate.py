"""docs/calibrate.md, and what docs/json.md says of a calibration, say what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest
import typer

from specctl.cli import calibrate
from specctl.control import calibration
from specctl.control.calibration_facts import Facts
from specctl.control.calibration_found import Said, said_wire
from specctl.control.crossovers import Answer, Crossover, Verdict
from specctl.measure import calibrate_file
from specctl.measure.calibrate import SURVEY_SHARE
from specctl.measure.calibrate_wire import segment_wire
from specctl.measure.sweep import Question
from specctl.ui import calibrate as views
from tests.unit.measure.calibrate_studies import EMPTY, MODES, measured
from tests.unit.test_docs_json import documented, hold

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "calibrate.md").read_text(encoding="utf-8")
QUESTION = Question(modes=MODES, grid=(1, 2), segment_s=1.0)


def between(begin: str, end: str) -> str:
    """Return the text between two marks of the page."""
    found = TEXT.partition(begin)[2].partition(end)[0]
    assert found, begin
    return found


def test_every_option_is_documented() -> None:
    """The page's options are those of the command, but for those that choose servers."""
    app = typer.Typer()
    calibrate.mount(app)
    command = typer.main.get_command(app)
    taken = {name for each in command.params for name in each.opts if name.startswith("--")}
    told = set(
        re.findall(
            r"`(--[a-z-]+)", "\n".join(re.findall(r"^\| (.*?) \|", between("\n## Options\n", "\n## "), re.MULTILINE))
        )
    )
    assert told == taken - {
        "--help", "--inventory", "--host", "--server", "--install-completion", "--show-completion",
    }  # fmt: skip


def test_every_key_of_the_file_is_documented() -> None:
    """The table has each key that is read, and no other."""
    rows = re.findall(r"^\| (`[^|]+`) \|", between("<!-- keys -->", "<!-- end keys -->"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == calibration.KEYS


def test_every_fact_is_documented() -> None:
    """The page names each fact that a calibration holds for."""
    told = re.findall(r"`(\w+)`", between("<!-- facts -->", "<!-- end facts -->"))
    assert told == [each.name for each in fields(Facts)]


def test_figures_are_current() -> None:
    """The figures that the page gives are those of the code."""
    assert f"by less than {QUESTION.level_ratio * 100:g} %" in TEXT
    assert f"level {QUESTION.alpha:g} / (n (n - 1))" in TEXT
    assert f"once in {1 / QUESTION.alpha:.0f} for a concurrency" in re.sub(r"forty", "40", TEXT)
    assert f"as {SURVEY_SHARE * 100:.0f} % of the time allow" in TEXT
    assert f"({calibrate_file.SPREAD:g} here, {calibration.SPREAD:g} where" in TEXT
    assert f"; {calibrate.LENGTH} if not said" in TEXT


def test_the_example_is_a_result() -> None:
    """The block has a table and every kind of line, and its plot is there."""
    block = between("<!-- result -->\n```\n", "\n```\n")
    assert "AT ONCE" in block
    assert {"best", "crossover", "trees", "drafts", "written"} <= set(re.findall(r"^  (\w+) ", block, re.MULTILINE))
    assert "<svg" in (DOCS / "calibrate.svg").read_text(encoding="utf-8")


def pairs() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield each documented object as it is with nothing known and with everything."""
    study = measured()
    content = calibrate_file.content(study)
    bare = replace(EMPTY, question=replace(EMPTY.question, modes=MODES[:2]))
    verdict = Verdict(answer=Answer.PAYS)
    yield "Calibration", {**views.as_wire(bare, None), "drafts": None}, views.as_wire(study, content)
    yield "CalibrationPlan", views.plan_wire(study, 1.0, None, ()), views.plan_wire(study, 1.0, 480.0, ("x",))
    segment = study.segments[0]
    nothing = replace(segment, accept_length=None)
    yield "Segment", segment_wire(nothing), segment_wire(replace(segment, spoiled="why"))
    cross = Crossover(before=MODES[:1], after=MODES[1:], low=1, high=2)
    said = [said_wire(Said(crossovers=(each,), trees=verdict)) for each in (cross, replace(cross, at=1.5))]
    rows = [each["crossovers"] for each in said]
    assert all(isinstance(row, list) for row in rows)
    yield "Crossover", rows[0][0], rows[1][0]  # type: ignore[index]  # lists, as was asserted


@pytest.mark.parametrize(("heading", "bare", "full"), [pytest.param(*each, id=each[0]) for each in pairs()])
def test_the_fields_of_a_calibration_are_documented(
    heading: str, bare: Mapping[str, object], full: Mapping[str, object]
) -> None:
    """Each object has the fields of its table, null where that says so and nowhere else."""
    hold(heading, bare, full)


def test_the_fields_of_conclusions_are_documented() -> None:
    """A stretch and a verdict have the fields of their tables."""
    told = said_wire(measured().said)
    stretches, trees = told["stretches"], told["trees"]
    assert isinstance(stretches, list)
    assert isinstance(trees, dict)
    assert set(documented("Stretch")) == set(stretches[0])
    assert set(documented("Verdict")) == set(trees)
