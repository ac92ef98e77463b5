"""Two benches side by side, as a table and as JSON: each figure, by which part it differs, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specctl.measure.bench import Metric
from specctl.measure.bench_compare import Comparison, Row
from specctl.measure.bench_wire import interval_wire
from specctl.measure.intervals import Interval
from specctl.ui import bench
from specctl.ui.text import UNKNOWN, plain

# What most people ask first; the others are in --json and with --all.
SHOWN = ("tokens_s", "request_tokens_s", "ttft_p50_s", "itl_p50_s", "itl_p99_s", "accept_length", "verify_steps_s")
WORDS: Mapping[str, str] = {
    "tokens_s": "tokens/s",
    "request_tokens_s": "tokens/s, each",
    "requests_s": "requests/s",
    "ttft_p50_s": "first token ms",
    "ttft_p95_s": "first token p95",
    "ttft_p99_s": "first token p99",
    "itl_p50_s": "token ms",
    "itl_p95_s": "token p95 ms",
    "itl_p99_s": "token p99 ms",
    "gap_p50_s": "chunk gap ms",
    "gap_p95_s": "chunk gap p95",
    "gap_p99_s": "chunk gap p99",
    "tpot_s": "TPOT ms",
    "latency_p50_s": "answer ms",
    "latency_p95_s": "answer p95 ms",
    "latency_p99_s": "answer p99 ms",
    "accept_length": "accept length",
    "verify_steps_s": "verify steps/s",
    "power_w": "GPU power W",
    "sm_clock_hz": "GPU clock GHz",
}
STYLES = {"better": "good", "worse": "bad"}
MOST = 9.0


def view(found: Comparison, *, every: bool) -> Group:
    """Return what was compared, what differs beside the figures, and a row a figure."""
    lines: list[Text | Table] = [
        Text.assemble("A  ", (plain(found.a.id), "id"), "  ", bench.title(found.a.subject)),
        Text.assemble("B  ", (plain(found.b.id), "id"), "  ", bench.title(found.b.subject)),
        Text(f"   {bench.load(found.a.setting)}, prompts {bench.asked(found.a.setting)}", style="quiet"),
    ]
    lines += [
        Text.assemble("differs  ", plain(f"{name}: {one} in A, {other} in B")) for name, one, other in found.differences
    ]
    lines += [Text.assemble(("refused  ", "bad"), plain(why)) for why in found.refusals]
    lines += [Text(), _table(found.rows, every=every)]
    if found.alone:
        lines += [Text(), Text(plain(f"in one of them alone: {' '.join(found.alone)}"), style="quiet")]
    return Group(*lines)


def _table(rows: Sequence[Row], *, every: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="column", show_edge=False, padding=(0, 1, 0, 0))
    for head in ("LOAD", "FIGURE", "A", "B", "B TO A", "INTERVAL", ""):
        words = head in ("FIGURE", "")  # these wrap where a narrow screen would cut figures
        table.add_column(head, justify="left" if words or head == "LOAD" else "right", no_wrap=not words)
    before = None
    for row in rows:
        if not every and row.metric.name not in SHOWN:
            continue
        level = row.level if row.level != before else ""
        before = row.level
        table.add_row(
            Text(plain(level)),
            Text(WORDS[row.metric.name]),
            Text(amount(row.metric, row.a.centre), style="number"),
            Text(amount(row.metric, row.b.centre), style="number"),
            Text(percent(row.difference, "centre"), style="number"),
            Text(interval(row.difference), style="number"),
            Text(row.verdict, style=STYLES.get(row.verdict, "default")),
        )
    return table


def amount(metric: Metric, value: float) -> str:
    """Return a figure in the unit of its words."""
    if metric.unit == "s":
        return bench.seconds(value)
    if metric.unit == "Hz":
        return f"{value / bench.GIGA:.2f}"
    return f"{value:,.2f}" if metric.unit == "tok/step" else bench.rate(value)


def percent(found: Interval | None, part: str) -> str:
    """Return a part of a difference in percent, with its sign; more than ten times is no figure any more."""
    value = None if found is None else getattr(found, part)
    if value is None:
        return UNKNOWN
    return f"{value * 100:+.1f} %" if value < MOST else "> 10×"


def interval(found: Interval | None) -> str:
    """Return a difference's bounds in percent."""
    low, high = percent(found, "low"), percent(found, "high")
    return UNKNOWN if UNKNOWN in (low, high) else f"{low.removesuffix(' %')} … {high.removesuffix(' %')}"


def as_wire(found: Comparison) -> Mapping[str, object]:
    """Return what `--json` prints (docs/json.md)."""
    return {
        "a": found.a.id,
        "b": found.b.id,
        "refusals": list(found.refusals),
        "differences": [{"name": name, "a": one, "b": other} for name, one, other in found.differences],
        "alone": list(found.alone),
        "rows": [
            {
                "level": row.level,
                "figure": row.metric.name,
                "a": interval_wire(row.a),
                "b": interval_wire(row.b),
                "difference_ratio": None if row.difference is None else interval_wire(row.difference),
                "verdict": row.verdict,
            }
            for row in found.rows
        ],
    }
