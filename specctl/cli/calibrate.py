"""`specctl calibrate`: which mode is best at which concurrency, measured where it is not certain, written for the agent."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specctl import errors
from specctl.cli import options
from specctl.control.objective import Metric
from specctl.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from specctl.fleet.types import Host, Server
    from specctl.measure.calibrate import Ask, Study
    from specctl.ops.calibrate import Ended
    from specctl.ops.calibrate_output import Output
    from specctl.ops.calibrate_plan import Planned

LENGTH = "30m"
FOR = Annotated[str | None, typer.Option("--for", metavar="TIME", help=f"How long it may take: 10m, 2h ({LENGTH}).")]
MODE = Annotated[
    list[str] | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="Compare these (repeatable): none, dflash, ddtree:tree_budget=16; else what the inventory lets the agent choose.",
    ),
]
CONCURRENCY = Annotated[
    str, typer.Option("--concurrency", "-c", metavar="N..N", help="From so many requests to so many.")
]
OBJECTIVE = Annotated[
    Metric | None,
    typer.Option("--objective", help="Show tok/s of one request (latency) or of all; else the inventory's objective."),
]
LIVE = Annotated[
    bool, typer.Option("--live", help="Only by telling the running engine; refuse where it cannot be told.")
]
RESTART = Annotated[
    bool, typer.Option("--restart", help="Start the server anew for each mode, even where it can be told.")
]
TOKENS = Annotated[int, typer.Option("--tokens", min=16, max=100_000, metavar="N", help="New tokens of every request.")]
PROMPTS = Annotated[
    str, typer.Option("--prompts", metavar="SET", help="mixed, code, maths, chat, long, or a JSONL file.")
]
SEED = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the prompts' salts.")]
OUTPUT = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Where the file goes; else beside the inventory.")
]
PLOT = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw throughput and crossovers (.png or .svg).")
]
RESUME = Annotated[
    str | None, typer.Option("--resume", metavar="ID", help="Go on with one that was interrupted (or `last`).")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the command behaves."""

    yes: bool
    dry_run: bool
    as_json: bool
    steal: bool
    plot: Path | None


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("calibrate")(calibrate)


@options.selecting("group", "exclude", "every")
def calibrate(
    chosen: options.Chosen,
    length: FOR = None,
    mode: MODE = None,
    concurrency: CONCURRENCY = "1..64",
    objective: OBJECTIVE = None,
    live: LIVE = False,
    restart: RESTART = False,
    tokens: TOKENS = 128,
    prompts: PROMPTS = "mixed",
    seed: SEED = 0,
    output: OUTPUT = None,
    plot: PLOT = None,
    resume: RESUME = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    steal_lock: options.STEAL = False,
    as_json: options.JSON = False,
) -> int:
    """Measure which mode is best at which concurrency, within a time limit, and write the file that the agent decides by."""
    from specctl.measure.calibrate import Ask

    if live and restart:
        raise UsageError("--live and --restart exclude each other", hint="leave one of them out")
    manner = Manner(yes=yes, dry_run=dry_run, as_json=as_json, steal=steal_lock, plot=_plot(plot))
    limit_s = None if length is None else _seconds(length)
    if resume is not None:
        return _go_on(chosen, resume, limit_s, output, manner)
    pair = options.one(chosen.pairs())
    low, high = _range(concurrency)
    metric = objective or Metric(pair[1].agent.objective.value)
    ask = Ask(
        low=low, high=high, limit_s=_seconds(LENGTH) if limit_s is None else limit_s, tokens=tokens, prompts=prompts,
        window_s=0.0, metric=metric, seed=seed,
    )  # fmt: skip
    return _begin(pair, ask, tuple(mode or ()), "live" if live else "restart" if restart else None, output, manner)


def _plot(text: str | None) -> Path | None:
    from specctl.ops import calibrate_output

    if text is None:
        return None
    calibrate_output.refuse_plot(Path(text))
    return Path(text)


def _seconds(text: str) -> float:
    from specctl.fleet import units

    try:
        return units.seconds(text)
    except ValueError as error:
        raise UsageError(f"--for {text}: {error}", hint="--for 30m") from error


def _range(text: str) -> tuple[int, int]:
    """Read 1..64, or one number from 1 up."""
    from specctl.measure.sweep import MOST_CONCURRENCY

    low, dots, high = text.partition("..")
    words = (low, high) if dots else ("1", low)
    numbers = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 6]
    if len(numbers) != 2 or not 1 <= numbers[0] < numbers[1] <= MOST_CONCURRENCY:
        raise UsageError(
            f"--concurrency {text}: from 1 on to {MOST_CONCURRENCY} at most, rising", hint="--concurrency 1..64"
        )
    return numbers[0], numbers[1]


def _begin(
    pair: tuple[Host, Server], ask: Ask, modes: tuple[str, ...], way: str | None, output: str | None, manner: Manner
) -> int:
    from specctl.ops import calibrate_output, calibrate_plan
    from specctl.ops.bench_wish import read_prompts

    texts = read_prompts(ask.prompts)
    target = calibrate_output.place(*pair, output)
    wish = calibrate_plan.Wish(ask=ask, modes=modes, way=way, steal=manner.steal)
    return _run(calibrate_plan.plan(pair, wish, texts), target, manner)


def _go_on(chosen: options.Chosen, name: str, limit_s: float | None, output: str | None, manner: Manner) -> int:
    """Go on with a calibration that is kept."""
    from specctl.ops import calibrate_output, calibrate_plan
    from specctl.ops.bench_wish import read_prompts

    old = calibrate_plan.kept(name)
    if chosen.hosts and chosen.hosts != (old.host,):
        raise UsageError(f"{old.id} runs on {old.host}", hint="leave --host out")
    pair = options.one(replace(chosen, hosts=(old.host,), servers=(old.server,)).pairs())
    target = calibrate_output.place(*pair, output)
    if limit_s is None and calibrate_plan.is_spent(old) and not manner.dry_run:
        return _tell_again(old, target, manner)
    return _run(
        calibrate_plan.plan_on(pair, old, read_prompts(old.ask.prompts), limit_s, steal=manner.steal), target, manner
    )


def _tell_again(old: Study, target: Output, manner: Manner) -> int:
    """Tell one that has used its time once more, and write its file again; nobody is reached."""
    from specctl.ops.calibrate import Ended

    typer.echo(f"{old.id} has used its time: specctl calibrate --resume {old.id} --for 10m measures on", err=True)
    return _tell(Ended(study=old, restored=True), target, manner)


def _run(planning: AbstractContextManager[Planned], target: Output, manner: Manner) -> int:
    """Show, ask, measure, write, tell."""
    with planning as plan:
        _show(plan, target, manner)
        if manner.dry_run:
            return errors.EXIT_OK
        _ask(manner)
        ended = _measure(plan, manner)
    return _tell(ended, target, manner)


def _show(plan: Planned, target: Output, manner: Manner) -> None:
    from specctl.ui import calibrate as views
    from specctl.ui.theme import console

    if manner.as_json:
        if manner.dry_run:
            shown = views.plan_wire(plan.study, plan.left_s, plan.load_s, plan.warnings)
            typer.echo(json.dumps({"plan": shown}, indent=2))
        return
    out = console(stderr=not manner.dry_run)
    width = out.width if out.is_terminal else None
    view = views.plan_view(plan.study, plan.left_s, plan.load_s, plan.warnings, str(target.path), width=width)
    out.print(view, soft_wrap=width is None)


def _ask(manner: Manner) -> None:
    from specctl.cli import acting

    acting.confirm(yes=manner.yes, as_json=manner.as_json)


def _measure(plan: Planned, manner: Manner) -> Ended:
    """Measure under a live view."""
    from specctl.cli.stopping import BROUGHT_BACK, EVERY, interruptible
    from specctl.ops import calibrate as sweeping
    from specctl.ops.ab_switch import Stop
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    stop = Stop()
    screen = console(stderr=True)
    mode = mode_for(screen, json_asked=manner.as_json)
    with Board(screen, mode, hosts=(plan.study.host,)) as board, interruptible(stop, BROUGHT_BACK, EVERY):
        return sweeping.carry_out(plan, board, stop, steal=manner.steal)


def _tell(ended: Ended, target: Output, manner: Manner) -> int:
    """Write file and plot, print what was found, and return the exit code; a file that cannot be written hides nothing else."""
    from specctl.adapters import lasting
    from specctl.cli.main import print_error

    study = ended.study
    measured = bool(study.conclusion.orders)
    stays = measured and not ended.whole and lasting.is_file(target.path)
    unwritten = _written(study, target, manner, stays=stays) if measured else None
    if manner.as_json:
        _print_json(study, measured=measured)
    elif measured:
        _print(study)
        if unwritten is None:
            _print_files(study, target, manner, stays=stays)
    if unwritten is not None:
        print_error(unwritten, as_json=manner.as_json)
    return _end(ended, measured=measured) or (errors.EXIT_OK if unwritten is None else unwritten.exit_code)


def _written(study: Study, target: Output, manner: Manner, *, stays: bool) -> UsageError | None:
    """Write file and plot, and return why one could not be. `stays`: a file of before is not given up for one that is not whole."""
    from specctl.ops import calibrate_output

    try:
        if not stays:
            calibrate_output.write(study, target.path)
        if manner.plot is not None:
            calibrate_output.draw(study, manner.plot)
    except UsageError as error:
        error.hint = f"specctl calibrate --resume {study.id} --output FILE.json writes it again"
        return error
    return None


def _print_json(study: Study, *, measured: bool) -> None:
    from specctl.measure import calibrate_file
    from specctl.ui import calibrate as views

    content = calibrate_file.content(study) if measured else None
    typer.echo(json.dumps({"calibration": views.as_wire(study, content)}, indent=2))


def _print(study: Study) -> None:
    from specctl.cli.printed import listing
    from specctl.ui import calibrate as views

    out = listing()
    out.print(views.result_view(study, width=out.width))


def _print_files(study: Study, target: Output, manner: Manner, *, stays: bool) -> None:
    """Say where the figures are, and how they come to the agent."""
    from specctl.cli.printed import listing
    from specctl.ui import calibrate as views

    out = listing()
    file = f"not yet: {target.path} stays as it was until this one is whole" if stays else str(target.path)
    lines = [("written", file + (f", {manner.plot}" if manner.plot else ""))]
    if not target.named and not stays:
        lines.append(("inventory", f"add  {target.line}"))
    if not stays:
        lines.append(("then", f"specctl deploy --host {study.host} carries it to the agent"))
    for label, text in lines:
        for row in views.row(label, text, None):
            out.print(row, soft_wrap=True)


def _end(ended: Ended, *, measured: bool) -> int:
    """Return the exit code; raise what ended the calibration before its time."""
    study = ended.study
    if ended.whole and measured:
        return errors.EXIT_OK
    runs = f"{study.was} runs again" if ended.restored else "what ran before was not brought back"
    typer.echo(
        f"stopped: {len(study.segments)} segments are kept; {runs}; specctl calibrate --resume {study.id} goes on",
        err=True,
    )
    if ended.error is not None:
        raise ended.error
    return errors.EXIT_INTERRUPTED if ended.interrupted else errors.EXIT_OK
