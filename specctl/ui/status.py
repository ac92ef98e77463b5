"""The status table and the history list; unknown is —, columns go before meaning does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from specctl.rollout.status import Row
from specctl.rollout.story import clock
from specctl.ui.text import UNKNOWN, age

STATE_STYLES = {"ready": "good", "loading": "phase", "stopped": "quiet", "not deployed": "quiet"}
WIDE = 110


def number(value: float | None, digits: int = 1) -> str:
    """Return a figure, or — when not known."""
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def algo_text(row: Row) -> str:
    """Return the algo with its knobs: ddtree 7/1."""
    if row.algo is None:
        return UNKNOWN
    knobs = "/".join(str(value) for value in row.knobs.values())
    return f"{row.algo} {knobs}".rstrip()


def state_text(row: Row) -> Text:
    """Return the state, with what is known of the proof."""
    text = row.state
    if row.state == "ready" and row.proven is not None:
        text += ", proven" if row.proven else ", claimed"
    return Text(text, style=STATE_STYLES.get(row.state, "bad"))


def table(rows: Sequence[Row], width: int) -> Table:
    """Return the table of servers; narrow terminals lose the figures that matter least."""
    view = Table(box=None, pad_edge=False, header_style="column", show_edge=False)
    wide = width >= WIDE
    columns = [
        "HOST",
        "SERVER",
        "ALGO",
        "STATE",
        "RUN",
        "QUEUE",
        *(["TOK/S", "ACCEPT", "AGE"] if wide else []),
        "RELEASE",
    ]
    for name in columns:
        view.add_column(
            name, justify="right" if name in {"RUN", "QUEUE", "TOK/S", "ACCEPT", "AGE"} else "left", no_wrap=True
        )
    for row in rows:
        engine = row.engine
        figures = [number(engine.tokens_per_s), number(engine.accept_length, 2), age(engine.age_s)] if wide else []
        view.add_row(
            Text(row.host, style="host"),
            row.server,
            algo_text(row),
            state_text(row),
            number(engine.running, 0),
            number(engine.waiting, 0),
            *figures,
            row.release or UNKNOWN,
        )
    return view


def notes(rows: Sequence[Row]) -> list[Text]:
    """Return one line a server that has something to say beside its row."""
    return [Text.assemble((row.host, "host"), f"  {row.note}") for row in rows if row.note]


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
