"""docs/troubleshooting.md lists every rule of the linter as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

from specctl.lint.catalogue import by_id
from specctl.lint.reference import reference

TEXT = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_the_document_is_current() -> None:
    """The tables between the marks are those that `python -m specctl.lint.reference` prints."""
    (shown,) = re.findall(r"<!-- lint: python -m specctl\.lint\.reference -->\n(.*?)<!-- /lint -->", TEXT, re.DOTALL)
    assert shown.strip() == reference().strip()


def test_every_rule_is_listed_once() -> None:
    """Each id stands at the head of one row, with its reason and its remedy."""
    rows = re.findall(r"^\| ([EWN]\d{3}) \| (.+?) \| (.+?) \| (.+?) \|$", reference(), re.MULTILINE)
    assert sorted(row[0] for row in rows) == sorted(by_id())
    for name, title, reason, remedy in rows:
        rule = by_id()[name]
        assert (title, reason, remedy) == (rule.title, rule.reason, rule.remedy)
