"""`specctl simulate`: a trace of requests or of concurrency, replayed through the agent's policy and through others."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.cli.printed import listing
from specctl.control.objective import Metric
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.ops.simulate import Simulation

TRACE = Annotated[
    str, typer.Option("--trace", metavar="FILE", help="Requests, rates or concurrency (docs/simulate.md).")
]
MODEL = Annotated[
    str,
    typer.Option("--model", metavar="FILE", help="Tokens a second by mode and concurrency, JSON (docs/simulate.md)."),
]
COST = Annotated[
    str,
    typer.Option(
        "--cost",
        metavar="live|restart|SECONDS",
        help="What a switch takes: 0.1 s, a drain and 480 s, or a drain and that.",
    ),
]
OBJECTIVE = Annotated[Metric, typer.Option("--objective", help="What the server is to be good at.")]
SCALE = Annotated[float | None, typer.Option("--scale", metavar="RATIO", help="So many times the trace's load.")]
LOAD = Annotated[
    float | None,
    typer.Option(
        "--load", metavar="RATIO", help="Scaled so that the busiest minute is that part of the best mode's capacity."
    ),
]
START = Annotated[
    str,
    typer.Option(
        "--start",
        metavar="MODE",
        help="The first mode: prior (what the agent would begin with), best, worst or a mode.",
    ),
]
POLICY = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAME", help="Show these alone: static, threshold, hysteresis, agent (repeatable)."
    ),
]
PROMPT = Annotated[
    float, typer.Option("--prompt-tokens", metavar="N", help="Mean prompt, where a trace has rates alone.")
]
ANSWER = Annotated[float, typer.Option("--answer-tokens", metavar="N", help="Mean answer, likewise.")]
SEED = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the arrivals that are drawn, likewise.")]
PLOT = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw concurrency and modes over time (.png or .svg).")
]


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("simulate")(simulate)


def simulate(
    trace: TRACE,
    model: MODEL,
    cost: COST,
    objective: OBJECTIVE = Metric.LATENCY,
    scale: SCALE = None,
    load: LOAD = None,
    start: START = "prior",
    policy: POLICY = None,
    prompt_tokens: PROMPT = 1000.0,
    answer_tokens: ANSWER = 500.0,
    seed: SEED = 0,
    plot: PLOT = None,
    as_json: options.JSON = False,
) -> None:
    """Replay a load through the agent's own policy, thresholds, static modes and the best in hindsight. No host is reached."""
    from specctl.ops import simulate as replay

    gc.disable()  # A long replay makes millions of small values and no cycles; looking for some took 5 % of it.
    if scale is not None and load is not None:
        raise UsageError("--scale and --load both say how much load there is", hint="leave one of them out")
    if plot is not None:
        replay.refuse_plot(plot)
    found = replay.simulate(
        replay.Request(
            trace=trace, model=model, cost=cost, metric=objective, scale=1.0 if scale is None else scale, peak=load, start=start,
            policies=tuple(policy or ()), lengths=replay.lengths(prompt_tokens, answer_tokens), seed=seed,
        )
    )  # fmt: skip
    if plot is not None:
        replay.write_plot(found, plot)
    _show(found, as_json=as_json)


def _show(found: Simulation, *, as_json: bool) -> None:
    """Print the table, or the same as JSON."""
    from specctl.ui import simulate as views

    if as_json:
        typer.echo(json.dumps({"simulation": views.as_wire(found.size, found.comparison, found.shown)}, indent=2))
        return
    out = listing()
    out.print(views.view(found.size, found.comparison, found.shown, width=out.width))
