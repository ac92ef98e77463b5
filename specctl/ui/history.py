"""The lines of `specctl history`: one record each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from specctl.rollout.story import clock
from specctl.ui.text import UNKNOWN

GAP = 2


def records_view(records: Sequence[Mapping[str, object]]) -> Table:
    """Return the records of one server; what does not fit in a line goes on below its own text, never below the time."""
    view = Table.grid(padding=(0, GAP, 0, 0))
    view.add_column(no_wrap=True)
    view.add_column(overflow="fold")
    for record in records:
        when, *rest = _parts(record)
        view.add_row(when, "  ".join(rest), style=_style(record))
    return view


def record_line(record: Mapping[str, object]) -> Text:
    """Return one record of the history."""
    return Text("  ".join(_parts(record)), style=_style(record))


def _style(record: Mapping[str, object]) -> str:
    return "default" if record.get("result") == "done" else "warn"


def _parts(record: Mapping[str, object]) -> list[str]:
    release, algo = record.get("release"), record.get("algo")
    what = f"release {release}, {algo}" if release else str(algo or "")
    if record.get("live") is True:
        knobs = record.get("knobs")
        shown = [f"{name} {value}" for name, value in knobs.items()] if isinstance(knobs, Mapping) else []
        what = f"live {', '.join([str(algo), *shown])}"
    took = record.get("durations_s")
    total = took.get("total") if isinstance(took, Mapping) else None
    parts = [
        str(record.get("at") or UNKNOWN),
        str(record.get("act") or UNKNOWN),
        what,
        str(record.get("result") or UNKNOWN),
        clock(float(total)) if isinstance(total, (int, float)) else "",
        f"by {record.get('who') or UNKNOWN}",
        str(record.get("cause") or record.get("reason") or ""),
    ]
    return [part for part in parts if part]
