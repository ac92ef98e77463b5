"""An experiment's report as Markdown: what was asked, the arms, the design, the result, what else it could be, every segment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from specctl.measure import ab_design
from specctl.measure.ab_result import Result
from specctl.measure.ab_types import QUANTITIES, quantity
from specctl.measure.ab_verdict import percent, seen
from specctl.ui.ab import interval, sends, signed
from specctl.ui.text import UNKNOWN


def markdown(result: Result, *, plots: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report; `plots`: title and file name of what is drawn beside it."""
    parts = (
        _head(result),
        _verdicts(result),
        _arms(result),
        _results(result),
        _plots(plots),
        _answers(result),
        _confounders(result),
        _design(result),
        _segments(result),
        _again(result),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _head(result: Result) -> Iterator[str]:
    trial = result.trial
    yield f"# {trial.arms[0].mode} against {trial.arms[1].mode}"
    yield ""
    yield f"Experiment `{trial.id}` on server {trial.server} of {trial.host}, begun {trial.began}, by specctl {trial.specctl}."
    if not trial.done:
        yield ""
        yield f"**Unfinished: {len(trial.segments)} of {len(trial.order)} segments.** `specctl ab --resume {trial.id}` goes on."
    if trial.resumed:
        yield f"It was interrupted and resumed {trial.resumed} time{'s' if trial.resumed != 1 else ''}."
    yield ""


def _verdicts(result: Result) -> Iterator[str]:
    trial = result.trial
    yield "## Verdict"
    yield ""
    for each in result.analysis.verdicts:
        pair = trial.between(each.base, each.other)
        yield f"- {pair}{', ' if pair else ''}{each.concurrency} at once: **{each.text}**"
    if trial.beside:
        count = len(trial.beside)
        yield ""
        yield f"> **Confounded.** A and B differ in {count} more thing{'s' if count != 1 else ''} than what was named:"
        yield "> the difference between them is of all of these together."
    yield ""


def _arms(result: Result) -> Iterator[str]:
    trial = result.trial
    yield "## What was compared"
    yield ""
    yield "| arm | mode | beside |"
    yield "|---|---|---|"
    for arm in trial.arms:
        yield f"| {arm.letter} | `{arm.mode}` | {arm.note} |"
    yield ""
    yield f"The one thing named: {trial.named or 'nothing, an A/A trial'}."
    if trial.beside:
        yield "What else differs between A and B:"
        yield ""
        yield from (f"- {each}" for each in trial.beside)
    elif trial.named:
        yield "Nothing else differs: not the flags, not the environment, not the engine's build."
    yield ""


def _results(result: Result) -> Iterator[str]:
    trial = result.trial
    yield "## Result"
    yield ""
    for base, other in trial.pairs:
        a, b = trial.letters[base], trial.letters[other]
        if pair := trial.between(base, other):
            yield f"### {pair}"
            yield ""
        yield f"| at once | figure | {a} | {b} | difference | 95 % interval | would have been seen |"
        yield "|---:|---|---:|---:|---:|---|---:|"
        for concurrency in trial.ask.concurrency:
            for each in result.analysis.of(concurrency, base, other):
                one = quantity(each.key)
                label = f"{one.label}, {one.unit}" if one.unit else one.label
                values = [f"{value * one.scale:.{one.digits}f}" for value in (each.base_value, each.other_value)]
                shown = (
                    signed(each.difference.ratio),
                    interval(each),
                    seen(each.difference.seen).removeprefix("anything "),
                )
                yield f"| {concurrency} | {label} | {' | '.join(values)} | {' | '.join(shown)} |"
        yield ""
    family = result.analysis.family
    yield f"Throughput is what was asked, {family} comparison{'s' if family != 1 else ''} in all, and its verdicts allow for"
    yield "how many there are (Holm). The other figures explain it; their intervals hold one by one."
    yield ""


def _plots(plots: Sequence[tuple[str, str]]) -> Iterator[str]:
    for title, name in plots:
        yield f"![{title}]({name})"
        yield ""


def _answers(result: Result) -> Iterator[str]:
    yield "## Greedy answers"
    yield ""
    for _, _, said in result.answers:
        yield f"- {said}"
    yield ""


def _confounders(result: Result) -> Iterator[str]:
    yield "## What else it could have been"
    yield ""
    yield "| confounder | | evidence |"
    yield "|---|---|---|"
    for each in result.confounders:
        standing = each.standing.value
        shown = f"**{standing}**" if standing != "ruled out" else standing
        yield f"| {each.name} | {shown} | {each.evidence} |"
    yield ""


def _design(result: Result) -> Iterator[str]:
    trial = result.trial
    how = (
        "one engine that was told each mode while it ran"
        if trial.ask.live
        else "every segment a fresh start of the engine"
    )
    yield "## Design"
    yield ""
    yield f"Order {ab_design.letters(trial.order, len(trial.arms))} (seed {trial.ask.seed}), {how};"
    yield f"{sends(trial)}."
    yield "One value a segment (the median of its runs) is the unit; least squares of its logarithm on the arm and on a steady"
    yield 'drift; Student\'s t on what is left. "Would have been seen": the true difference that such an experiment finds four'
    yield "times in five. More: `docs/ab.md`."
    for base, other in trial.pairs[:1]:
        for each in result.analysis.compared:
            if each.key == QUANTITIES[0].key and (each.base, each.other) == (base, other):
                found = each.difference
                yield f"At {each.concurrency} at once: spread of a segment {percent(found.spread)}, drift over the whole"
                yield f"{signed(found.drift)}, {found.freedom} degrees of freedom."
    yield ""


def _segments(result: Result) -> Iterator[str]:
    trial = result.trial
    yield "## Every segment"
    yield ""
    heads = [f"tok/s at {c}" for c in trial.ask.concurrency]
    yield f"| | arm | begun | load | {' | '.join(heads)} | runs | others' cores |"
    yield f"|---:|---|---|---:|{'---:|' * len(heads)}---|---:|"
    for each in trial.segments:
        values = [_figure(each.value(c, "tokens_s")) for c in trial.ask.concurrency]
        rows = [" ".join(_figure(run.tokens_s) for run in level.runs) for level in each.levels]
        load = UNKNOWN if each.load_s is None else f"{each.load_s:.1f} s"
        cores = UNKNOWN if each.around.foreign_cores is None else f"{each.around.foreign_cores:.2f}"
        letter = trial.letters[each.arm]
        yield f"| {each.place + 1} | {letter} | {each.began} | {load} | {' | '.join(values)} | {'; '.join(rows)} | {cores} |"
    yield ""


def _figure(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f}"


def _again(result: Result) -> Iterator[str]:
    trial = result.trial
    ask = trial.ask
    words = ["specctl", "ab", "--host", trial.host, "--server", trial.server, "--a", ask.a, "--b", ask.b]
    words += ["--concurrency", ",".join(str(each) for each in ask.concurrency), "--tokens", str(ask.tokens)]
    words += ["--prompts", ask.prompts, "--cycles", str(ask.cycles), "--runs", str(ask.runs)]
    words += [
        "--rounds",
        str(ask.rounds),
        "--seconds",
        f"{ask.seconds:g}",
        "--warmup",
        str(ask.warmup),
        "--seed",
        str(ask.seed),
    ]
    words += [word for each in ask.options_b for word in ("--b-option", each)]
    words += [word for each in ask.env_b for word in ("--b-env", each)]
    words += ["--confounded"] if ask.confounded else []
    words += ["--third-arm"] if ask.third_arm else []
    words += ["--live"] if ask.live else []
    yield "## Again"
    yield ""
    yield "```"
    yield shlex.join(words)
    yield "```"
    yield ""
    for arm in trial.arms:
        yield f"{arm.letter} was launched as"
        yield ""
        yield "```"
        yield shlex.join(arm.words)
        yield "```"
        yield ""
    yield "| what must be the same | |"
    yield "|---|---|"
    for name, value in trial.facts.items():
        yield f"| {name} | {value} |"
