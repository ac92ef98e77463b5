"""`specctl ab`: two modes of one server against each other, in a balanced order, with what else it could have been."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specctl import errors
from specctl.cli import options
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.measure.ab_result import Result
    from specctl.measure.ab_trial import Ask, Trial
    from specctl.ops.ab import Ended, Planned

MODE_HELP = "An algo with its knobs: dflash, or ddtree:tree_budget=7,topk_cap=1."
A = Annotated[str | None, typer.Option("--a", metavar="MODE", help=f"The first arm. {MODE_HELP}")]
B = Annotated[str | None, typer.Option("--b", metavar="MODE", help="The second arm, likewise.")]
CONCURRENCY = Annotated[str, typer.Option("--concurrency", "-c", metavar="N,N", help="Requests at once.")]
TOKENS = Annotated[int, typer.Option("--tokens", min=16, max=100_000, metavar="N", help="New tokens of every request.")]
PROMPTS = Annotated[
    str, typer.Option("--prompts", metavar="SET", help="mixed, code, maths, chat, long, or a JSONL file.")
]
CYCLES = Annotated[
    int, typer.Option("--cycles", min=1, max=100, metavar="N", help="How often the arms are gone through and back.")
]
RUNS = Annotated[
    int, typer.Option("--runs", min=1, max=100, metavar="N", help="Runs of each concurrency within one start.")
]
ROUNDS = Annotated[int, typer.Option("--rounds", min=1, max=1000, metavar="N", help="Requests of each slot in a run.")]
SECONDS = Annotated[
    float,
    typer.Option(
        "--seconds", min=0.0, max=3600.0, metavar="SECONDS", help="A run lasts at least so long, with more requests."
    ),
]
WARMUP = Annotated[
    int, typer.Option("--warmup", min=1, max=100, metavar="N", help="Requests a slot that are not counted.")
]
SEED = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the order and of the prompts.")]
SMALLEST = Annotated[
    float,
    typer.Option("--smallest", min=0.1, max=100.0, metavar="PERCENT", help="The smallest difference that matters."),
]
B_OPTION = Annotated[
    list[str] | None,
    typer.Option("--b-option", metavar="NAME=VALUE", help="An engine option of B alone (repeatable)."),
]
B_ENV = Annotated[
    list[str] | None, typer.Option("--b-env", metavar="NAME=VALUE", help="A variable of B alone (repeatable).")
]
CONFOUNDED = Annotated[bool, typer.Option("--confounded", help="Go on where more than one thing differs.")]
THIRD = Annotated[bool, typer.Option("--third-arm", help="Also measure A with the flags that B's algo implies.")]
LIVE = Annotated[
    bool,
    typer.Option("--live", help="Tell one running engine both modes, where it takes them, in place of fresh starts."),
]
RESUME = Annotated[
    str | None,
    typer.Option("--resume", metavar="ID", help="Go on with an experiment that was interrupted (or `last`)."),
]
LIST = Annotated[bool, typer.Option("--list", help="Show the experiments that are kept.")]
REPORT = Annotated[str | None, typer.Option("--report", metavar="FILE.md", help="Where the report goes.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the command behaves."""

    yes: bool
    dry_run: bool
    as_json: bool
    steal: bool
    report: str | None


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("ab")(ab)


@options.selecting("group", "exclude", "every")
def ab(
    chosen: options.Chosen,
    a: A = None,
    b: B = None,
    concurrency: CONCURRENCY = "1",
    tokens: TOKENS = 512,
    prompts: PROMPTS = "mixed",
    cycles: CYCLES = 2,
    runs: RUNS = 3,
    rounds: ROUNDS = 4,
    seconds: SECONDS = 0.0,
    warmup: WARMUP = 1,
    seed: SEED = 0,
    smallest: SMALLEST = 5.0,
    b_option: B_OPTION = None,
    b_env: B_ENV = None,
    confounded: CONFOUNDED = False,
    third_arm: THIRD = False,
    live: LIVE = False,
    resume: RESUME = None,
    kept: LIST = False,
    report: REPORT = None,
    skip_check: options.SKIP = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    steal_lock: options.STEAL = False,
    as_json: options.JSON = False,
) -> int:
    """Measure two modes of one server against each other, and say what the difference is and what else it could be."""
    from specctl.measure.ab_trial import Ask

    manner = Manner(yes=yes, dry_run=dry_run, as_json=as_json, steal=steal_lock, report=report)
    if kept:
        return _list(as_json=as_json)
    if resume is not None:
        return _go_on(chosen, resume, a or b, skip_check, manner)
    if a is None or b is None:
        raise UsageError("an experiment has two arms", hint="--a dflash --b ddtree:tree_budget=7,topk_cap=1")
    ask = Ask(
        a=a, b=b, concurrency=_levels(concurrency), tokens=tokens, prompts=prompts, cycles=cycles, runs=runs, rounds=rounds,
        seconds=seconds, warmup=warmup, seed=seed, wanted=smallest / 100, options_b=tuple(b_option or ()),
        env_b=tuple(b_env or ()), confounded=confounded, third_arm=third_arm, live=live,
    )  # fmt: skip
    return _run(chosen, ask, None, skip_check, manner)


def _list(*, as_json: bool) -> int:
    """Show the experiments that are kept, oldest first."""
    from specctl.measure.ab_result import as_wire, conclude
    from specctl.ops import ab as trials
    from specctl.ui import ab as views

    found, faults = trials.listing()
    if as_json:
        typer.echo(
            json.dumps({"experiments": [as_wire(conclude(each)) for each in found], "faults": list(faults)}, indent=2)
        )
        return errors.EXIT_OK
    for each in found:
        typer.echo(views.list_line(conclude(each)))
    for fault in faults:
        typer.echo(f"warning: {fault}", err=True)
    if not found:
        typer.echo("no experiment is kept here: specctl ab --host H --a MODE --b MODE", err=True)
    return errors.EXIT_OK


def _levels(text: str) -> tuple[int, ...]:
    """Read 1,8 as numbers that rise."""
    from specctl.measure.load import MOST_CONCURRENCY

    words = text.split(",")
    numbers = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 6]
    if (
        len(numbers) < len(words)
        or len(set(numbers)) < len(numbers)
        or not all(1 <= n <= MOST_CONCURRENCY for n in numbers)
    ):
        raise UsageError(
            f"--concurrency {text}: numbers from 1 to {MOST_CONCURRENCY}, each once, with commas",
            hint="--concurrency 1,8",
        )
    return tuple(sorted(numbers))


def _go_on(chosen: options.Chosen, name: str, given: str | None, skip_check: list[str] | None, manner: Manner) -> int:
    """Go on with an experiment that is kept; one that is done is told again."""
    from dataclasses import replace

    from specctl.ops import ab as trials

    if given is not None:
        raise UsageError("--resume goes on with the arms that it began with", hint=f"specctl ab --resume {name}")
    old = trials.kept(name)
    if old.done:
        return _tell(old, None, manner)
    if chosen.hosts and chosen.hosts != (old.host,):
        raise UsageError(f"{old.id} runs on {old.host}", hint="leave --host out")
    return _run(replace(chosen, hosts=(old.host,), servers=(old.server,)), old.ask, old, skip_check, manner)


def _run(chosen: options.Chosen, ask: Ask, old: Trial | None, skip_check: list[str] | None, manner: Manner) -> int:
    """Plan, show, ask, measure, tell."""
    from specctl.adapters.templates import Templates
    from specctl.ops import ab as trials
    from specctl.ops.ab_report import place_of, refuse_other
    from specctl.ops.bench_wish import read_prompts
    from specctl.ops.preflight import skips

    texts = read_prompts(ask.prompts)
    skipped = skips(skip_check, None)
    if manner.report is not None:
        refuse_other(Path(manner.report))
    with trials.planned(
        ask, texts, lambda over: options.one(chosen.pairs(over)), Templates(()), old=old, skipped=skipped
    ) as plan:
        refuse_other(place_of(manner.report, plan.trial))
        _show(plan, manner)
        if manner.dry_run:
            return errors.EXIT_OK
        _ask(plan, manner)
        ended = _measure(plan, manner)
    return _tell(ended.trial, ended, manner)


def _show(plan: Planned, manner: Manner) -> None:
    """Print what will be done and what it costs."""
    from specctl.ui import ab as views
    from specctl.ui import checks
    from specctl.ui.theme import console

    cost = plan.cost
    if manner.as_json:
        if manner.dry_run:
            typer.echo(
                json.dumps({"plan": views.plan_wire(plan.trial, cost.loads, cost.load_s, cost.measuring_s)}, indent=2)
            )
        return
    out = console()
    width = out.width if out.is_terminal else None
    text = views.cost_text(cost.loads, cost.load_s, cost.measuring_s, assumed=cost.assumed)
    rows = dict.fromkeys(row for one in plan.plans if one.checks for row in checks.plan_rows(one.checks))
    out.print(views.plan_view(plan.trial, text, checks=tuple(rows), width=width), soft_wrap=width is None)


def _ask(plan: Planned, manner: Manner) -> None:
    from specctl.cli import acting

    acting.confirm(yes=manner.yes, as_json=manner.as_json)


def _measure(plan: Planned, manner: Manner) -> Ended:
    """Run the experiment under a live view."""
    from specctl.cli.stopping import BROUGHT_BACK, EVERY, interruptible
    from specctl.ops import ab as trials
    from specctl.ops.ab_switch import Stop
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    stop = Stop()
    screen = console(stderr=True)
    mode = mode_for(screen, json_asked=manner.as_json)
    with Board(screen, mode, hosts=(plan.trial.host,)) as board, interruptible(stop, BROUGHT_BACK, EVERY):
        return trials.carry_out(plan, board, stop, steal=manner.steal)


def _tell(trial: Trial, ended: Ended | None, manner: Manner) -> int:
    """Write the report, print what was found, and return the exit code; a report that cannot be written hides nothing else."""
    from specctl.cli.main import print_error
    from specctl.measure.ab_result import as_wire, conclude

    result = conclude(trial)
    files, unwritten = _written(result, manner)
    if manner.as_json:
        typer.echo(json.dumps({"ab": as_wire(result), "report": [str(path) for path in files]}, indent=2))
    else:
        _print(result, files)
    if unwritten is not None:
        print_error(unwritten, as_json=manner.as_json)
    code = errors.EXIT_OK if ended is None else _end(trial, ended)
    return code or (errors.EXIT_OK if unwritten is None else unwritten.exit_code)


def _written(result: Result, manner: Manner) -> tuple[tuple[Path, ...], UsageError | None]:
    """Write the report of what was measured; return its files, or why there are none."""
    from specctl.ops import ab_report

    trial = result.trial
    if not trial.segments:
        return (), None
    try:
        return ab_report.write(result, ab_report.place_of(manner.report, trial)), None
    except UsageError as error:
        error.hint = f"specctl ab --resume {trial.id} --report FILE.md writes it again"
        return (), error


def _print(result: Result, files: tuple[Path, ...]) -> None:
    from specctl.cli.printed import listing
    from specctl.ui import ab as views

    out = listing()
    if result.trial.done:
        out.print(views.result_view(result, width=out.width))
    nothing = "none" if result.trial.segments else "none: no segment was measured"
    for line in views.row("report", f"{files[0]} (with plots)" if files else nothing, None):
        out.print(line, soft_wrap=True)


def _end(trial: Trial, ended: Ended) -> int:
    """Return the exit code; raise what ended the experiment before its time."""
    if ended.error is None and not ended.interrupted:
        return errors.EXIT_OK
    release, algo = trial.before
    runs = (
        f"release {release}, {algo}, runs again" if ended.restored else f"release {release}, {algo}, does not run again"
    )
    done = f"{len(trial.segments)} of {len(trial.order)} segments are kept"
    typer.echo(f"stopped: {done}; {runs}; specctl ab --resume {trial.id} goes on", err=True)
    if ended.interrupted and ended.restored:
        return errors.EXIT_INTERRUPTED
    assert ended.error is not None
    raise ended.error
