"""The tables of known texts in docs/troubleshooting.md; `python -m tests.unit.engines.known_texts` writes them anew."""

from __future__ import annotations

from pathlib import Path

from specctl.engines._log_types import KnownText, TextKind
from specctl.engines._sglang_log import GRAMMAR

DOCUMENT = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
_HEADINGS = {TextKind.CAUSE: "What it is", TextKind.CONSEQUENCE: "What follows", TextKind.NOTE: "Worth knowing"}


def table(kind: TextKind) -> str:
    """Return the table of one kind, in the order of the ids."""
    rows = [f"| {known.id} | {known.title} | {known.remedy} |" for known in _sorted(kind)]
    return "\n".join((f"| id | {_HEADINGS[kind]} | What to do |", "|---|---|---|", *rows))


def rendered(document: str) -> str:
    """Return the document with every table between its marks made anew."""
    for kind in TextKind:
        begin, end = f"<!-- {kind.value} -->", f"<!-- end {kind.value} -->"
        before, _, rest = document.partition(begin)
        _, _, after = rest.partition(end)
        document = f"{before}{begin}\n{table(kind)}\n{end}{after}"
    return document


def _sorted(kind: TextKind) -> list[KnownText]:
    return sorted((known for known in GRAMMAR.texts if known.kind is kind), key=lambda known: known.id)


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(DOCUMENT.read_text("utf-8")), "utf-8")
