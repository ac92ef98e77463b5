"""docs/doctor.md is current: its checks, its case from the field as it really comes out; docs/json.md has what is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specctl.cli import main as command_line
from specctl.control.mode import mode
from specctl.doctor import figures
from specctl.doctor.catalogue import by_id
from specctl.doctor.reference import reference
from specctl.doctor.types import Confidence, Finding, Passed, Report, Unknown
from specctl.lint.types import Severity
from specctl.ops.doctor import Examined
from tests.unit.test_docs_json import ERROR, hold

TEXT = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
FINDING = Finding(
    id="M003",
    title="t",
    message="m",
    meaning="w",
    evidence=("e",),
    effect="f",
    remedy="r",
    severity=Severity.NOTE,
    confidence=Confidence.CERTAIN,
)
EXAMINED = Examined(host="gpu1", server="chat")


def test_the_table_of_checks_is_current() -> None:
    """The tables between the marks are those that `python -m specctl.doctor.reference` prints."""
    (shown,) = re.findall(
        r"<!-- checks: python -m specctl\.doctor\.reference -->\n(.*?)<!-- /checks -->", TEXT, re.DOTALL
    )
    assert shown.strip() == reference().strip()


def test_every_check_is_listed_once() -> None:
    """Each id stands at the head of one row, with its meaning and its remedy."""
    rows = re.findall(
        r"^\| ([MSCL]\d{3}) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", reference(), re.MULTILINE
    )
    assert sorted(row[0] for row in rows) == sorted(by_id())
    for check_id, severity, title, meaning, looks_at, effect, remedy in rows:
        check = by_id()[check_id]
        assert (severity, title, meaning) == (check.severity.value, check.title, check.meaning)
        assert (looks_at, effect, remedy) == (check.looks_at, check.effect, check.remedy)


def test_the_fields_case_comes_out_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own figures file gives the page's own output, to the letter."""
    (given,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    shown = re.findall(r"^    \$ specctl doctor --figures field\.yaml\n((?:    .*\n|\n)+?)(?=\S)", TEXT, re.MULTILINE)
    (tmp_path / "field.yaml").write_text(given, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command_line.mount()
    result = CliRunner().invoke(command_line.app, ["doctor", "--figures", "field.yaml"], env={"COLUMNS": "110"})
    assert result.exit_code == 0, result.output
    lines = [line[4:].rstrip() for line in shown[0].rstrip().splitlines()]
    assert [line.rstrip() for line in result.stdout.rstrip().splitlines()] == lines


def test_every_key_of_a_figures_file_is_documented() -> None:
    """The page lists each key that is read, and no other."""
    table = TEXT.partition("\n## Figures files\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table, re.MULTILINE)
    assert sorted(key.strip("`") for row in rows for key in row.split(", ")) == sorted(figures.KEYS)


def objects() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield each documented object as it is with nothing known and with everything."""
    full = replace(
        EXAMINED,
        profile="lab",
        mode=mode("none"),
        up_s=1.0,
        log_lines=1,
        report=Report(findings=(FINDING,)),
        error=ERROR,
    )
    yield "Examined", EXAMINED.as_wire(), full.as_wire()
    yield "DoctorFinding", FINDING.as_wire(), FINDING.as_wire()
    passed, unknown = (
        Passed(id="M003", title="t").as_wire(),
        Unknown(id="M003", title="t", reason="r", decide="d").as_wire(),
    )
    yield "PassedCheck", passed, passed
    yield "UnknownCheck", unknown, unknown


@pytest.mark.parametrize(("heading", "bare", "full"), list(objects()), ids=[name for name, _, _ in objects()])
def test_fields_are_documented(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """The table has each field that is printed, and says null of those, and only those, that may be null."""
    hold(heading, bare, full)
