"""The history of a server on the screen: a line a record, whose end goes on below its own text."""

from __future__ import annotations

import io

from specctl.ui.history import record_line, records_view
from specctl.ui.theme import console

WHEN = "2026-11-30T12:04:48+00:00"
BACK = {"at": WHEN, "act": "switch", "release": "1", "algo": "dflash", "result": "rolled back", "who": "guard"}
CAUSE = "root@vm was gone; it was ready, but nobody confirmed it within 120 s"


def shown(*records: dict[str, object], width: int) -> list[str]:
    """Return the lines of these records in so many columns."""
    screen = io.StringIO()
    console(file=screen, width=width, terminal=False).print(records_view(records))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def test_a_record_that_is_too_long_keeps_clear_of_the_times() -> None:
    """At 80 columns the rest of a record stands under its text, so that each time begins a record."""
    lines = shown({**BACK, "cause": CAUSE}, {**BACK, "result": "done"}, width=80)
    assert len(lines) == 4
    assert [line.startswith(WHEN) for line in lines] == [True, False, False, True]
    assert lines[1].startswith(" " * (len(WHEN) + 2))
    assert " ".join(" ".join(lines[:3]).split()).endswith(CAUSE)


def test_a_record_that_fits_is_one_line() -> None:
    """What the dashboard shows as one text stands on one line here."""
    assert shown({**BACK, "cause": CAUSE}, width=200) == [record_line({**BACK, "cause": CAUSE}).plain]
