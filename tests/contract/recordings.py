"""Read the recordings of the real server (tests/data/sglang-0.5.23/dialect)."""

from __future__ import annotations

import csv
import json
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data" / "sglang-0.5.23" / "dialect"


def recorded(name: str) -> object:
    """Return a recorded JSON body."""
    return json.loads((RECORDED / name).read_text(encoding="utf-8"))


def lines(name: str) -> list[str]:
    """Return a recorded text's lines, progress bars kept whole."""
    return (RECORDED / name).read_bytes().decode("utf-8").split("\n")


def rows(name: str) -> list[dict[str, str]]:
    """Return a recorded table."""
    with (RECORDED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))
