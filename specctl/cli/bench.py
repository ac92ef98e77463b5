"""`specctl bench`: measure a server level by level; and what was measured: list, show, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import bench_kept, options
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.ops.bench_wish import Options

app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=False,
    subcommand_metavar="[list|show|compare] …",
    context_settings={"help_option_names": ["-h", "--help"]},
)

CONCURRENCY = Annotated[
    str | None,
    typer.Option(
        "--concurrency", "-c", metavar="N,N,…", help="Closed loop: so many requests in flight [1,2,4,8,16,32]."
    ),
]
RATE = Annotated[
    str | None, typer.Option("--rate", metavar="R,R,…", help="Open loop: requests a second, arriving by chance.")
]
TRACE = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="Send a trace's requests (docs/simulate.md has the formats)."),
]
TOKENS = Annotated[
    int | None, typer.Option("--tokens", min=2, metavar="N", help="New tokens of every answer, exactly [512].")
]
RUNS = Annotated[int, typer.Option("--runs", min=1, max=100, metavar="N", help="Runs a level.")]
PROMPTS = Annotated[
    str, typer.Option("--prompts", metavar="KIND|FILE.jsonl", help="mixed, code, maths, chat, long, or a file.")
]
WARMUP = Annotated[
    int | None,
    typer.Option(
        "--warmup", min=0, max=1000, metavar="N", help="Requests that are not counted: a slot [1], or an open loop [4]."
    ),
]
ROUNDS = Annotated[
    int, typer.Option("--rounds", min=1, max=1000, metavar="N", help="Counted requests a slot, at least.")
]
SECONDS = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        min=0.0,
        max=86_400.0,
        metavar="SECONDS",
        help="A run lasts at least so long (an open loop [30], a trace: at most).",
    ),
]
LIMIT = Annotated[
    float,
    typer.Option("--limit", min=1.0, max=86_400.0, metavar="SECONDS", help="No request is sent after it, in any run."),
]
SEED = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**31, metavar="N", help="Of salts before prompts and of arrivals [by chance]."),
]
TEMPERATURE = Annotated[float, typer.Option("--temperature", min=0.0, max=10.0, metavar="T", help="0 is greedy.")]
NOTE = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A remark that is kept with it.")]
PLOT = Annotated[Path | None, typer.Option("--plot", metavar="FILE.png|svg", help="Draw it.")]


def mount(root: typer.Typer) -> None:
    """Add the group to the app."""
    bench_kept.mount(app)
    root.add_typer(app, name="bench")


@app.callback()
@options.selecting("group", "exclude", "every")
def bench(
    chosen: options.Chosen,
    ctx: typer.Context,
    concurrency: CONCURRENCY = None,
    rate: RATE = None,
    trace: TRACE = None,
    tokens: TOKENS = None,
    runs: RUNS = 3,
    prompts: PROMPTS = "mixed",
    warmup: WARMUP = None,
    rounds: ROUNDS = 3,
    seconds: SECONDS = None,
    limit: LIMIT = 600.0,
    seed: SEED = None,
    temperature: TEMPERATURE = 0.0,
    note: NOTE = None,
    plot: PLOT = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    as_json: options.JSON = False,
) -> int:
    """Measure a server: throughput, latencies, acceptance, GPU power, at every level of load.

    `specctl bench --host H` measures; `specctl bench list`, `show` and `compare` look at what was kept.
    """
    from specctl.ops.bench_wish import Options

    if ctx.invoked_subcommand is not None:
        _refuse_options(ctx)
        return 0
    asked = Options(
        concurrency=concurrency, rate=rate, trace=trace, tokens=tokens, runs=runs, prompts=prompts, warmup=warmup,
        rounds=rounds, seconds=seconds, limit_s=limit, seed=seed, temperature=temperature, note=note,
    )  # fmt: skip
    return _measure(chosen, asked, plot=plot, yes=yes, dry_run=dry_run, as_json=as_json)


def _refuse_options(ctx: typer.Context) -> None:
    """Refuse options before `list`, `show` and `compare`: those of a measurement mean nothing to them, their own come after."""
    sources = {each: ctx.get_parameter_source(each.name or "") for each in ctx.command.params}
    given = [each.opts[0] for each, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        name = ctx.invoked_subcommand
        raise UsageError(
            f"{given[0]} before {name} is an option of a measurement, and bench {name} measures nothing",
            hint=f"specctl bench {name} --help",
        )


def _measure(
    chosen: options.Chosen, asked: Options, *, plot: Path | None, yes: bool, dry_run: bool, as_json: bool
) -> int:
    """Say what will be sent, ask, send it, show what came of it."""
    from specctl.cli import acting, bench_run
    from specctl.ops import bench_reach, bench_wish

    wish = bench_wish.wish(asked)
    if plot is not None:
        bench_run.refuse_plot(plot)
    pair = options.one(chosen.pairs())
    with bench_reach.reached(pair, wish, ask=not dry_run) as ready:
        bench_run.show_plan(ready, dry_run=dry_run, as_json=as_json)
        if dry_run:
            return 0
        acting.confirm(yes=yes, as_json=as_json)
        found = bench_run.run(ready, as_json=as_json)
    return bench_run.finish(found, plot=plot, as_json=as_json)
