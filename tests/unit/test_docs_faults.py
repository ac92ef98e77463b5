"""docs/faults.md: every test that a row names exists, and every test of faults stands in a row."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
NAME = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
OF_FAULTS = ("fleet/test_faults_*.py", "unit/hostile/test_*.py")
# What holds a helper of the tests to its word, and no fault.
BESIDE = {"test_numbers", "test_json_stays_json"}


def defined(*patterns: str) -> set[str]:
    """Return the tests that the files of these patterns define."""
    files = [path for pattern in patterns for path in (ROOT / "tests").glob(pattern)]
    return {name for path in files for name in DEFINED.findall(path.read_text(encoding="utf-8"))}


def rows() -> list[str]:
    """Return the rows of the page's tables, without their heads."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith(("| fault |", "| input |"))]


def test_every_row_names_tests_that_exist() -> None:
    """Each row of the matrix names at least one test, and each name is a test's."""
    known = defined("**/test_*.py")
    assert len(rows()) > 40
    for row in rows():
        names = NAME.findall(row)
        assert names, row
        assert set(names) <= known, row


def test_every_test_of_faults_is_in_the_matrix() -> None:
    """No test of a fault is without its row."""
    named = set(NAME.findall(PAGE.read_text(encoding="utf-8")))
    assert defined(*OF_FAULTS) - named <= BESIDE
