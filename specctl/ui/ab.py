"""An experiment as a person reads it: what it compares and costs before it begins, and what it found in one screen at the end."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from specctl.measure import ab_design
from specctl.measure.ab_confounders import Standing
from specctl.measure.ab_result import Result
from specctl.measure.ab_trial import Trial
from specctl.measure.ab_types import quantity
from specctl.measure.ab_verdict import Call, Compared, number, seen
from specctl.ui.plan import LABEL as PLAN_LABEL
from specctl.ui.plan import wrapped
from specctl.ui.text import UNKNOWN, age

LABEL = 11
CALL_STYLES = {Call.DIFFERENT: "warn", Call.SAME: "good", Call.OPEN: "bad"}


def row(label: str, text: str, width: int | None, style: str = "quiet") -> list[Text]:
    """Return a labelled line, in as many lines as it takes."""
    pieces = wrapped(text, None if width is None else width - LABEL + PLAN_LABEL - 1)
    return [
        Text.assemble((f"  {label if place == 0 else '':<{LABEL}}", style), piece) for place, piece in enumerate(pieces)
    ]


def plan_view(trial: Trial, cost: str, *, checks: Sequence[tuple[str, str]] = (), width: int | None = None) -> Group:
    """Return what will be done: arms, the one difference, what else differs, the order, what is sent, the checks, the cost."""
    lines = [Text.assemble((trial.host, "host"), f" · {trial.server} · experiment {trial.id}"), Text()]
    for arm in trial.arms:
        note = f"   ({arm.note})" if arm.note else ""
        lines += row(arm.letter, f"{arm.mode}{note}", width, "id")
    named = trial.named or "nothing: an A/A trial, which shows the noise"
    lines += row("differs", named + (" alone" if trial.named and not trial.beside else ""), width)
    for place, each in enumerate(trial.beside):
        lines += row("and" if place == 0 else "", str(each), width, "warn")
    lines += row("order", order_text(trial), width)
    lines += row("sends", sends(trial), width)
    if trial.segments:
        lines += row("done", f"{len(trial.segments)} of {len(trial.order)} segments, kept", width)
    for label, text in checks:
        lines += row(label, text, width, "warn" if label == "warn" else "quiet")
    lines += row("cost", cost, width)
    release, algo = trial.before
    lines += row("after", f"release {release}, {algo}, is brought back, also on failure and on Ctrl-C", width)
    return Group(*lines, Text())


def order_text(trial: Trial) -> str:
    """Say the order of the segments."""
    names = trial.letters
    shown = ab_design.letters(trial.order, len(trial.arms))
    how = "told to one running engine" if trial.ask.live else "each a fresh start"
    return f"{shown}: {len(trial.order)} segments, {how} ({', '.join(names)} balanced over time)"


def sends(trial: Trial) -> str:
    """Say what is sent to the server."""
    ask = trial.ask
    levels = ", ".join(str(each) for each in ask.concurrency)
    count = f"{ask.runs} run{'s' if ask.runs != 1 else ''}"
    least = f" and at least {ask.seconds:g} s" if ask.seconds else ""
    return (
        f"{ask.tokens} tokens a request, greedy, {ask.prompts} prompts; {levels} at once; {count} of {ask.rounds} requests a "
        f"slot{least}, after {ask.warmup} for warm-up"
    )


def cost_text(loads: int, load_s: float | None, measuring_s: float, *, assumed: bool = False) -> str:
    """Say what it takes in minutes; `assumed`: for a speed that nobody has measured here."""
    measuring = f"about {age(measuring_s)} of measuring{' if its speed is a usual one' if assumed else ''}"
    if loads == 0:
        return f"{measuring}; the server goes on serving"
    if load_s is None:
        return f"{loads} loads (no load of this host is on record) and {measuring}"
    total = age(loads * load_s + measuring_s)
    return f"about {total}: {loads} loads of {age(load_s)}, during which nothing is served, and {measuring}"


def plan_wire(trial: Trial, loads: int, load_s: float | None, measuring_s: float) -> dict[str, object]:
    """Return the JSON object of a plan (docs/json.md)."""
    return {
        "id": trial.id,
        "host": trial.host,
        "server": trial.server,
        "arms": [{"letter": arm.letter, "mode": arm.mode, "note": arm.note or None} for arm in trial.arms],
        "named": trial.named,
        "beside": [each.as_wire() for each in trial.beside],
        "order": [trial.letters[arm] for arm in trial.order],
        "segments_done": len(trial.segments),
        "before": list(trial.before),
        "loads": loads,
        "load_s": load_s,
        "measuring_s": measuring_s,
    }


def result_view(result: Result, *, width: int) -> Group:
    """Return what it found: a table a pair of arms and concurrency, the verdicts, what was ruled out and what was not."""
    trial = result.trial
    parts: list[RenderableType] = []
    for concurrency in trial.ask.concurrency:
        for base, other in trial.pairs:
            found = result.analysis.of(concurrency, base, other)
            pair = trial.between(base, other)
            parts += [
                Text(f"{concurrency} at once{f': {pair}' if pair else ''}", style="id"),
                table(trial, found, width),
            ]
            for verdict in result.analysis.verdicts:
                if (verdict.concurrency, verdict.base, verdict.other) == (concurrency, base, other):
                    parts += row("verdict", verdict.text, width, CALL_STYLES[verdict.call])
            parts.append(Text())
    parts += [line for _, _, said in result.answers for line in row("answers", said, width)]
    parts += confounders(result, width)
    return Group(*parts)


def list_line(result: Result) -> str:
    """Return an experiment in a line: its id, where, its arms, how far it is, its verdicts."""
    trial = result.trial
    arms = " against ".join(arm.mode for arm in trial.arms[:2])
    if not trial.done:
        end = f"{len(trial.segments)} of {len(trial.order)} segments"
    else:
        end = "; ".join(f"{each.concurrency} at once: {each.text}" for each in result.analysis.verdicts)
    return f"{trial.id}  {trial.host} {trial.server}  {arms}  {end}"


def table(trial: Trial, found: Sequence[Compared], width: int) -> Table:
    """Return the quantities of one pair of arms at one concurrency."""
    made = Table(box=None, pad_edge=False, show_edge=False, header_style="column")
    letters = (trial.letters[found[0].base], trial.letters[found[0].other]) if found else ("A", "B")
    made.add_column("  FIGURE", no_wrap=True)
    for name in (*letters, "DIFFERENCE"):
        made.add_column(name, justify="right", no_wrap=True)
    if width >= 72:
        made.add_column("95 % INTERVAL", justify="right", no_wrap=True)
    if width >= 90:
        made.add_column("WOULD BE SEEN", justify="right", no_wrap=True)
    for each in found:
        one = quantity(each.key)
        unit = f" {one.unit}" if one.unit else ""
        values = [f"{value * one.scale:.{one.digits}f}{unit}" for value in (each.base_value, each.other_value)]
        cells = [f"  {one.label}", *values, signed(each.difference.ratio)]
        cells += [interval(each)] if width >= 72 else []
        cells += [seen(each.difference.seen).removeprefix("anything ")] if width >= 90 else []
        made.add_row(*cells)
    return made


def signed(ratio: float) -> str:
    """Write a difference with its sign."""
    text = number(ratio)
    plus = "" if text[0] in "−>" or float(text) == 0 else "+"
    return f"{plus}{text} %"


def interval(each: Compared) -> str:
    """Write an interval as people do."""
    low, high = signed(each.difference.low), signed(each.difference.high)
    return f"({low.removesuffix(' %')} … {high.removesuffix(' %')})"


def confounders(result: Result, width: int | None) -> list[Text]:
    """Say what was ruled out, what was found, and what nobody knows."""
    out = ", ".join(each.name for each in result.standing(Standing.RULED_OUT)) or UNKNOWN
    found, unknown = result.standing(Standing.FOUND), result.standing(Standing.UNKNOWN)
    lines = row("ruled out", out if found or unknown else f"{out}; not ruled out: {UNKNOWN}", width)
    for place, each in enumerate(found):
        lines += row("FOUND" if place == 0 else "", f"{each.name}: {each.evidence}", width, "bad")
    for place, each in enumerate(unknown):
        lines += row("not known" if place == 0 else "", f"{each.name}: {each.evidence}", width, "warn")
    return lines
