"""The lines of `specctl history`: one record each."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from specctl.rollout.story import clock
from specctl.ui.text import UNKNOWN


def record_line(record: Mapping[str, object]) -> Text:
    """Return one record of the history."""
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
    done = record.get("result") == "done"
    return Text("  ".join(part for part in parts if part), style="default" if done else "warn")
