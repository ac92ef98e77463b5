"""What a simulation found, as a table that fits 80 columns and as JSON; seconds a token become milliseconds for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specctl.control.objective import Metric
from specctl.control.replay.compare import OURS, Comparison, Row
from specctl.control.replay.score import Score
from specctl.control.replay.sizing import Size
from specctl.ui.text import UNKNOWN, age

SERIES_YARDSTICK = "the best schedule of all, its future known"
QUEUEING_YARDSTICK = "the best in hindsight of a schedule that knows the future, static modes, thresholds"
COLUMNS = ("POLICY", "MS/TOKEN", "P95", "TOKENS", "SWITCHES", "LOST MIN", "REGRET")
# What a terminal loses first when it is narrower than the table.
SPARED, WIDE = frozenset({"P95", "LOST MIN"}), 72


def view(size: Size, found: Comparison, shown: Sequence[Row], *, width: int) -> Group:
    """Return the title, a row a policy with the yardstick last, and what it comes to."""
    columns = [name for name in COLUMNS if width >= WIDE or name not in SPARED]
    table = Table(box=None, pad_edge=False, header_style="column", show_edge=False)
    for name in columns:
        first = name == "POLICY"
        table.add_column(name, justify="left" if first else "right", no_wrap=not first, overflow="fold")
    for row in shown:
        style = "id" if row.policy == OURS else "default"
        cells = dict(zip(COLUMNS, (_name(row, found), *_figures(row.score), ratio(found.regret(row))), strict=True))
        table.add_row(*(Text(cells[name], style=style if name == "POLICY" else "number") for name in columns))
    return Group(Text(title(size, found)), Text(), table, Text(), Text(summary(found)))


def title(size: Size, found: Comparison) -> str:
    """Say in two lines what was replayed, and on what terms."""
    setting = found.setting
    what = f"{size.name} · {age(size.span_s)}"
    if size.requests is not None and size.peak is not None:
        what += f" · {size.requests} requests · busiest minute at {size.peak:.2f} of the best mode's capacity"
    else:
        what += " · concurrency as it was recorded, whatever serves"
    return f"{what}\nfor {setting.objective.metric.value} · a switch takes {setting.outage} · begins in {setting.start}"


def summary(found: Comparison) -> str:
    """Say what the yardstick is, and what the best and the worst static mode and our policy are worth against it."""
    fixed = sorted((row for row in found.rows if row.mode is not None), key=lambda row: -row.score.value)
    yardstick = QUEUEING_YARDSTICK if found.queueing else SERIES_YARDSTICK
    ours = [row for row in found.rows if row.policy == OURS]
    lines = [
        f"* {yardstick}",
        f"best static mode   {fixed[0].mode}, {_missed(found, fixed[0])}",
        f"worst static mode  {fixed[-1].mode}, {_missed(found, fixed[-1])}",
        f"free switching     would beat the best static mode by {ratio(found.free_gain_ratio)}",
        *(f"agent              {_missed(found, row)}, {_count(row.score.switches)}" for row in ours),
    ]
    return "\n".join(lines)


def as_wire(size: Size, found: Comparison, shown: Sequence[Row]) -> Mapping[str, object]:
    """Return what `--json` prints of a simulation (docs/json.md)."""
    setting = found.setting
    return {
        "trace": size.name,
        "span_s": size.span_s,
        "requests": size.requests,
        "peak_load_ratio": size.peak,
        "objective": setting.objective.metric.value,
        "switch_s": setting.outage.seconds,
        "drains": setting.outage.drains,
        "start": str(setting.start),
        "queueing": found.queueing,
        "free_gain_ratio": found.free_gain_ratio,
        "yardstick": found.yardstick.name,
        "policies": [policy_values(found, row) for row in shown],
    }


def policy_values(found: Comparison, row: Row) -> Mapping[str, object]:
    """Return one policy's figures as `--json` prints them."""
    score = row.score
    return {
        "policy": row.policy,
        "mode": None if row.mode is None else str(row.mode),
        "mean_token_s": score.mean_s,
        "p95_token_s": score.p95_s,
        "tokens": score.tokens,
        "switches": score.switches,
        "lost_s": score.lost_s,
        "value": score.value,
        "regret_ratio": found.regret(row),
    }


def _name(row: Row, found: Comparison) -> str:
    return f"{row.name} *" if row is found.yardstick else row.name


def _figures(score: Score) -> tuple[str, ...]:
    return (
        milliseconds(score.mean_s),
        milliseconds(score.p95_s),
        tokens(score.tokens),
        str(score.switches),
        f"{score.lost_s / 60:.1f}",
    )


def milliseconds(seconds: float | None) -> str:
    """Return seconds as milliseconds with three figures or so."""
    if seconds is None:
        return UNKNOWN
    value = seconds * 1000
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def tokens(count: float) -> str:
    """Return a count of tokens with four figures or so."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= 10 * size:
            return f"{count / size:.4g} {unit}"
    return f"{count:.0f}"


def ratio(value: float | None) -> str:
    """Return a part of one in percent."""
    return UNKNOWN if value is None else f"{value * 100:.1f} %"


def _missed(found: Comparison, row: Row) -> str:
    regret = found.regret(row)
    what = "tokens" if found.setting.objective.metric is Metric.THROUGHPUT else "speed"
    return (
        f"beats the yardstick by {ratio(-regret)}"
        if regret is not None and regret < 0
        else f"misses {ratio(regret)} of its {what}"
    )


def _count(switches: int) -> str:
    return "1 switch" if switches == 1 else f"{switches} switches"
