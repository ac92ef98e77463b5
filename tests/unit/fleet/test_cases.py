"""Every case of tests/cases/inventory_*.yaml gives exactly the problems that it lists, as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from specctl.adapters.inventory_files import BuiltInProfiles, read_files
from specctl.errors import InventoryError
from specctl.fleet.resolve import resolve

FOLDER = Path(__file__).parents[2] / "cases"


def cases() -> list[tuple[str, str, list[str]]]:
    """Read every case: its promise, its text, its problems."""
    found = []
    for file in sorted(FOLDER.glob("inventory_*.yaml")):
        subject = file.stem.removeprefix("inventory_")
        read = yaml.safe_load(file.read_text(encoding="utf-8"))
        found += [(f"{subject}: {case['promise']}", case["text"], case["problems"]) for case in read]
    return found


def problems_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a text as they are printed, without the folder."""
    file = folder / "inventory.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        resolve(read_files([str(file)]), BuiltInProfiles())
    except InventoryError as error:
        return [str(problem).replace(f"{folder}/", "") for problem in error.problems]
    return []


@pytest.mark.parametrize(("text", "expected"), [pytest.param(t, e, id=i) for i, t, e in cases()])
def test_case_gives_its_problems(tmp_path: Path, text: str, expected: list[str]) -> None:
    """The inventory is refused for exactly what is wrong with it."""
    assert problems_of(tmp_path, text) == expected
