"""A calibration as a person reads it: what it will do, and what it found: who is best where, the crossovers, the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specctl.control import calibration_found
from specctl.control.crossovers import Answer, Crossover, Stretch, Verdict
from specctl.control.mode import Mode
from specctl.control.objective import Metric
from specctl.measure.calibrate import Study
from specctl.measure.calibrate_wire import segment_wire
from specctl.measure.sweep_order import Order, Standing
from specctl.ui.plan import wrapped
from specctl.ui.text import UNKNOWN, age

LABEL = 12
INDENT = 4  # what the label is wider than that of a plan, by which lines are wrapped
ANSWER_STYLES = {Answer.PAYS: "good", Answer.NEVER: "warn", Answer.OPEN: "quiet"}
MARKS = {Standing.BEST: "*", Standing.LEVEL: "=", Standing.OPEN: "?", Standing.WORSE: ""}
LEGEND = "* highest  = level  ? not decided   tok/s {what} ± two standard errors"


def row(label: str, text: str, width: int | None, style: str = "quiet") -> list[Text]:
    """Return a labelled line, in as many lines as it takes."""
    pieces = wrapped(text, None if width is None else width - INDENT)
    return [
        Text.assemble((f"  {label if place == 0 else '':<{LABEL}}", style), piece) for place, piece in enumerate(pieces)
    ]


def plan_view(
    study: Study, left_s: float, load_s: float | None, warnings: Sequence[str], output: str, *, width: int | None = None
) -> Group:
    """Return what will be done: modes, concurrencies, what is sent, how the mode is changed, how long it takes."""
    question, ask = study.question, study.ask
    lines = [Text.assemble((study.host, "host"), f" · {study.server} · calibration {study.id}"), Text()]
    for number, mode in enumerate(question.modes, start=1):
        lines += row(
            "modes" if number == 1 else "", f"{number}  {mode}" + ("   (runs now)" if mode == study.was else ""), width
        )
    levels = ", ".join(str(at) for at in question.grid)
    lines += row("measures", f"{levels} requests at once, twice each; then where the best mode is not certain", width)
    sends = f"{ask.tokens} tokens a request, greedy, {ask.prompts} prompts, windows of {ask.window_s:.0f} s"
    lines += row("sends", sends, width)
    lines += row("changes", change_text(study, load_s), width)
    lines += row("takes", f"{age(left_s)} at most, with what it takes to bring back what ran", width)
    if study.segments:
        lines += row("done", f"{len(study.segments)} segments, kept", width)
    lines += row("writes", output, width)
    for each in warnings:
        lines += row("warning", each, width, "warn")
    return Group(*lines, Text())


def change_text(study: Study, load_s: float | None) -> str:
    """Say how the mode is changed and what that costs."""
    if not study.question.by_mode:
        return f"the running engine is told each mode, and {study.was} at the end; nothing is restarted"
    known = f"{age(load_s)} each" if load_s is not None else "no load of this host is on record"
    count = 2 * len(study.question.modes) + 1
    last = f"release {study.before[0]}, {study.before[1]}, at the end"
    return f"about {count} restarts ({known}), during which nothing is served; {last}"


def result_view(study: Study, *, width: int) -> Group:
    """Return what was found: the figures by mode, who is best where, the crossovers, the verdicts."""
    said = study.conclusion
    lines = [*_head(study, width), Text()]
    table = _table(study, width)
    below = [Text()]
    for number, each in enumerate(said.stretches):
        below += row("best" if number == 0 else "", stretch_text(each, study.names), width)
    for number, crossover in enumerate(said.crossovers):
        below += row("crossover" if number == 0 else "", crossover_text(crossover, study.names), width)
    if not said.crossovers:
        below += row("crossover", no_crossover(study), width)
    for label, verdict in (("trees", said.trees), ("drafts", said.drafts)):
        if verdict is not None:
            below += row(label, verdict_text(verdict), width, ANSWER_STYLES[verdict.answer])
    return Group(*lines, table, Text(LEGEND.format(what=_what(study)), style="quiet"), *below)


def _head(study: Study, width: int) -> list[Text]:
    facts = study.facts
    gpu = f"{facts.gpu_count}× {facts.gpu}" if facts.gpu else None
    what = " · ".join(filter(None, (study.server, " ".join(filter(None, (facts.profile, facts.engine_version))), gpu)))
    dropped = f", {len(study.spoiled)} dropped" if study.spoiled else ""
    lines = [
        Text.assemble(
            (study.host, "host"), f" · {what} · {len(study.segments)} segments{dropped}, {age(study.spent_s)}"
        )
    ]
    for number, mode in enumerate(study.question.modes, start=1):
        lines += row(str(number), str(mode), width, "id")
    return lines


def _what(study: Study) -> str:
    return "of one request" if study.ask.metric is Metric.LATENCY else "of all requests"


def _table(study: Study, width: int) -> Table:
    """Return a row a concurrency, a column a mode by its number; narrow terminals lose the errors."""
    modes = study.question.modes
    errors = width >= 10 + 17 * len(modes)
    table = Table(box=None, pad_edge=False, header_style="column", show_edge=False)
    table.add_column("  AT ONCE", justify="right")
    for number in range(1, len(modes) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    for at, each in study.conclusion.orders.items():
        share = at if study.ask.metric is Metric.LATENCY else 1
        table.add_row(str(at), *(_cell(each, mode, share, errors=errors) for mode in modes))
    return table


def _cell(each: Order, mode: Mode, share: int, *, errors: bool) -> Text:
    mean = each.means.get(mode)
    if mean is None:
        return Text(UNKNOWN, style="quiet")
    standing = each.standings[mode]
    reach = f" ±{2 * mean.error / share:.1f}" if errors and mean.error is not None else ""
    style = "quiet" if standing is Standing.WORSE else "number"
    return Text(f"{mean.tokens_s / share:,.1f}{reach} {MARKS[standing] or ' '}", style=style)


def span(low: float, high: float) -> str:
    """Say a stretch of concurrencies."""
    return f"at {low:g}" if low == high else f"from {low:g} to {high:g}"


def stretch_text(each: Stretch, called: Mapping[Mode, str]) -> str:
    """Say which modes are best on a stretch, and whether that is certain."""
    names = [called[mode] for mode in each.modes]
    if not each.decided:
        named = f" ({', '.join(names)})" if len(names) > 1 else ""
        return f"{span(each.low, each.high)}   not decided: measure longer{named}"
    if len(names) == 1:
        return f"{span(each.low, each.high)}   {names[0]}"
    return f"{span(each.low, each.high)}   no difference that matters: {', '.join(names)}"


def crossover_text(each: Crossover, called: Mapping[Mode, str]) -> str:
    """Say where the best mode changes."""
    names = [" or ".join(called[mode] for mode in modes) for modes in (each.before, each.after)]
    about = f", about {each.at:.1f}" if each.at is not None else ""
    return f"{names[0]} → {names[1]}: between {each.low:g} and {each.high:g}{about}"


def no_crossover(study: Study) -> str:
    """Say what no crossover means."""
    said = study.conclusion
    ends = list(said.orders)
    if not ends:
        return "nothing was measured"
    if said.open:
        return f"none is certain between {ends[0]} and {ends[-1]}: measure longer"
    return f"none between {ends[0]} and {ends[-1]}"


def verdict_text(verdict: Verdict) -> str:
    """Say whether a kind of modes pays."""
    levels = ", ".join(f"{at:g}" for at in verdict.at)
    left = ", ".join(f"{at:g}" for at in verdict.open)
    match verdict.answer:
        case Answer.PAYS:
            return f"{verdict.answer.value} at {levels}" + (f"; not decided at {left}" if left else "")
        case Answer.NEVER:
            return f"{verdict.answer.value}, at no concurrency that was measured"
        case Answer.OPEN:
            return f"{verdict.answer.value} at {left}: measure longer"


def plan_wire(study: Study, left_s: float, load_s: float | None, warnings: Sequence[str]) -> dict[str, object]:
    """Return what `--dry-run --json` prints (docs/json.md)."""
    ask, question = study.ask, study.question
    return {
        "id": study.id,
        "host": study.host,
        "server": study.server,
        "modes": [str(mode) for mode in question.modes],
        "concurrency": list(question.grid),
        "way": study.way,
        "tokens": ask.tokens,
        "prompts": ask.prompts,
        "window_s": ask.window_s,
        "limit_s": left_s,
        "load_s": load_s,
        "was": str(study.was),
        "warnings": list(warnings),
    }


def as_wire(study: Study, content: Mapping[str, object] | None) -> dict[str, object]:
    """Return what `--json` prints of a calibration (docs/json.md); `content`: the file, None where nothing was measured."""
    return {
        "id": study.id,
        "host": study.host,
        "server": study.server,
        "way": study.way,
        "objective": study.ask.metric.value,
        "spent_s": study.spent_s,
        "dropped": len(study.spoiled),
        **calibration_found.said_wire(study.said),
        "file": content,
        "segments": [segment_wire(each) for each in study.segments],
    }
