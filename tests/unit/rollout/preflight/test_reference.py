"""docs/troubleshooting.md lists every check of preflight as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

from specctl.rollout.preflight.catalogue import CHECKS
from specctl.rollout.preflight.reference import SUBJECTS, reference

TEXT = (Path(__file__).parents[4] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MARKED = r"<!-- preflight: python -m specctl\.rollout\.preflight\.reference -->\n(.*?)<!-- /preflight -->"


def test_the_document_is_current() -> None:
    """The tables between the marks are those that `python -m specctl.rollout.preflight.reference` prints."""
    (shown,) = re.findall(MARKED, TEXT, re.DOTALL)
    assert shown.strip() == reference().strip()


def test_every_check_is_listed_once() -> None:
    """No subject is left out, and each id stands at the head of one row of five cells."""
    assert [check for _, checks in SUBJECTS for check in checks] == list(CHECKS)
    rows = re.findall(r"^\| (P\d{3})((?: \| [^|]+){4}) \|$", reference(), re.MULTILINE)
    assert [name for name, _ in rows] == [check.id for check in CHECKS]
