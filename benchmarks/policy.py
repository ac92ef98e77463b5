"""Hold the agent's policy against schedules that know the future, on request traces: the very decide() of specctl.control.policy.

Every cell is a trace, a peak load (the busiest minute over the best static capacity), the cost of a switch and an objective; the
policy begins in the prior's choice (for the load that is expected; with --blind, knowing nothing of it) and in the worst mode.
`clair`: its worth over that of the clairvoyant schedule from the same start, exact on the concurrency of the fastest static mode.
`best`: over that of the best static mode. `n`: switches.
`queue`: with requests that share the server and wait, its value over the best in hindsight (docs/simulate.md).
`gain`: what the clairvoyant schedule has over the worst static mode; cells under 5 % count for nothing.
`!` marks what is under its bar, `~` where the clairvoyant schedule itself is, since it has to leave the first mode.

Usage: python benchmarks/policy.py [--traces DIR] [--model FILE] [--trace NAME …] [--cost S …] [--blind] [--no-queueing]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specctl.adapters import trace_files
from specctl.control.limits import Limits
from specctl.control.objective import Metric, Objective
from specctl.control.replay import compare, ours, sizing
from specctl.control.replay.arrivals import Lengths
from specctl.control.replay.clairvoyant import plan
from specctl.control.replay.compare import Row, Setting
from specctl.control.replay.load import Requests, Series
from specctl.control.replay.outage import LIVE_S, Outage
from specctl.control.replay.schedule import Schedule
from specctl.control.replay.worth import Worth
from specctl.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"
COSTS_S = (0.1, 5.0, 480.0)
LOADS = (0.3, 0.6, 0.9, 1.2)
CLAIR_BAR, STATIC_BAR, LEAST_GAIN = 0.97, 0.99, 0.05
HEAD = (
    f"{'trace':<26}{'load':>5}{'cost s':>7}  {'objective':<10}{'gain':>6} |{'clair':>8}{'best':>7}{'queue':>7}{'n':>5} "
    f"|{'clair':>8}{'best':>7}{'queue':>7}{'n':>5}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One trace at one load, and what of it is to be worked out; `first`: it is the trace's first load.

    `expected`: the prior is told how often each concurrency comes, as an operator would who knows the service.
    """

    trace: Path
    model: Path
    load: float
    first: bool
    costs_s: Sequence[float]
    queueing: bool
    expected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Our policy from one start: worth over the clairvoyant schedule's and the best static mode's, queueing, switches.

    `reach`: the clairvoyant schedule's worth from this start over the best static mode's: nobody gets further. `bound`: what it
    pays over what its documented bound lets it pay.
    """

    clair: float
    best: float
    reach: float
    bound: float
    queue: float | None
    switches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One line of the table."""

    trace: str
    load: float | None
    cost_s: float
    metric: Metric
    gain: float
    prior: Ratios
    worst: Ratios

    @property
    def counts(self) -> bool:
        """Claim that there is something to win here."""
        return self.gain >= LEAST_GAIN

    @property
    def missed(self) -> bool:
        """Claim that the policy is under a bar from the prior's choice."""
        reachable = self.prior.reach >= STATIC_BAR
        return self.counts and (self.prior.clair < CLAIR_BAR or (reachable and self.prior.best < STATIC_BAR))


def outage(cost_s: float) -> Outage:
    """Return what a cost stands for: a tenth of a second is live, everything longer drains first."""
    return Outage(seconds=cost_s, drains=cost_s > LIVE_S)


def cells(case: Case) -> list[Cell]:
    """Work out every cell of one trace at one load."""
    service = trace_files.read_model(str(case.model))
    trace = trace_files.read_trace(str(case.trace))
    if isinstance(trace, Series):
        if not case.first:
            return []  # a concurrency has no arrivals to scale: it is tried once, as it is
        load: Requests | Series = trace
    else:
        load = sizing.by_peak(trace, case.load, service, Lengths(), seed=0)
    found: list[Cell] = []
    for metric in Metric:
        first = next(iter(service.rates))
        setting = Setting(service=service, objective=Objective(metric=metric), outage=outage(0.0), start=first)
        fixed = compare.statics(setting, load)
        series = load if isinstance(load, Series) else compare.at_server(setting, load, compare.fastest_mode(fixed))
        found += [_cell(case, replace(setting, outage=outage(cost_s)), load, series, fixed) for cost_s in case.costs_s]
    return found


def _cell(case: Case, setting: Setting, load: Requests | Series, series: Series, fixed: Sequence[Row]) -> Cell:
    """Work out one cell: from both starts, on the series and, if wished, with queueing."""
    values = Worth(setting.service, setting.objective)
    alone = compare.statics(setting, series)
    best = max(row.score.value for row in alone)
    worst = min(row.score.value for row in alone)
    if best <= 0:
        raise UsageError(f"{case.trace}: nobody was there", hint="choose another trace")
    told = Counter(series.levels) if case.expected else None
    prior = ours.prior_choice(setting.service, setting.objective, told)
    ratios: list[Ratios] = []
    gain = 0.0
    for start in (prior, compare.worst_mode(alone)):
        here = replace(setting, start=start)
        known = _planned(here, series, values, setting.outage.seconds)
        acts = compare.driven(here, series, ours.maker(here))
        mine = compare.series_row(here, series, values, "", acts).score
        if not ratios:
            gain = known / worst - 1 if worst > 0 else math.inf
        ratios.append(
            Ratios(
                clair=mine.value / known if known > 0 else 1.0,
                best=mine.value / best,
                reach=known / best,
                bound=_paid(here, series, values, acts, mine.value),
                queue=_queue(here, load, series, fixed, values)
                if case.queueing and isinstance(load, Requests)
                else None,
                switches=mine.switches,
            )
        )
    return Cell(
        trace=case.trace.stem,
        load=None if isinstance(load, Series) else case.load,
        cost_s=setting.outage.seconds,
        metric=setting.objective.metric,
        gain=gain,
        prior=ratios[0],
        worst=ratios[1],
    )


def _planned(setting: Setting, series: Series, values: Worth, away_s: float) -> float:
    """Return the clairvoyant schedule's worth per second where a switch takes so long."""
    here = replace(setting, outage=Outage(seconds=away_s, drains=True))
    return compare.series_row(here, series, values, "", plan(series, values, setting.start, away_s)).score.value


def _paid(setting: Setting, series: Series, values: Worth, acts: Schedule, mine: float) -> float:
    """Return what the policy pays, in regret and switches, over what the bound in specctl/control/policy.py lets it pay.

    The dearest price is reckoned at the highest worth of any second. The tolerance comes on top, as the bound says.
    """
    limits, away_s = Limits(), setting.outage.seconds
    least, most = limits.enough(away_s)
    bests = [max(values.rows[level]) for level in series.levels]
    free, dearest = sum(bests) * series.step_s, max(bests) * away_s
    optimum = free - _planned(setting, series, values, most * away_s) * series.span_s
    modes = len({acts.start, *(move.mode for move in acts.moves)})
    tolerated = 0.0 if least == most else limits.tolerance_ratio * free
    bound = modes * (1 + 1 / least) * (optimum + most * dearest) + tolerated
    paid = free - mine * series.span_s
    return paid / bound if bound > 0 else 0.0


def _queue(setting: Setting, load: Requests, series: Series, fixed: Sequence[Row], values: Worth) -> float:
    """Return our value over the best in hindsight, both with queueing."""
    mine = compare.queue_row(setting, load, compare.OURS, ours.maker(setting))
    return mine.score.value / compare.in_hindsight(setting, load, series, values, fixed).score.value


def line(cell: Cell) -> str:
    """Return a cell as a line of the table."""
    starts = " |".join(
        _figures(ratios, judged=cell.counts and place == 0) for place, ratios in enumerate((cell.prior, cell.worst))
    )
    load = "-" if cell.load is None else f"{cell.load:g}"
    gain = f"{cell.gain * 100:>5.0f}%"
    return f"{cell.trace[:25]:<26}{load:>5}{cell.cost_s:>7g}  {cell.metric.value:<10}{gain} |{starts}"


def _figures(ratios: Ratios, *, judged: bool) -> str:
    clair = "!" if judged and ratios.clair < CLAIR_BAR else " "
    best = " " if not judged or ratios.best >= STATIC_BAR else "!" if ratios.reach >= STATIC_BAR else "~"
    queue = f"{ratios.queue:>7.3f}" if ratios.queue is not None else f"{'-':>7}"
    return f"{ratios.clair:>7.3f}{clair}{ratios.best:>6.3f}{best}{queue}{ratios.switches:>5}"


def summary(found: Sequence[Cell]) -> Iterator[str]:
    """Yield what it comes to, by cost: how many cells count, how many of those are under a bar, and the least of each ratio."""
    for cost_s in sorted({cell.cost_s for cell in found}):
        mine = [cell for cell in found if cell.cost_s == cost_s and cell.counts]
        if not mine:
            yield f"cost {cost_s:g} s: no cell in which there is anything to win"
            continue
        least = {name: min(getattr(cell.prior, name) for cell in mine) for name in ("clair", "best")}
        yield (
            f"cost {cost_s:g} s: {sum(cell.missed for cell in mine)} of {len(mine)} cells under a bar\n"
            f"  from the prior's choice  at least {least['clair']:.3f} of clairvoyant (bar {CLAIR_BAR}), "
            f"{least['best']:.3f} of the best static mode (bar {STATIC_BAR})\n"
            f"  from the worst mode      at least {min(cell.worst.clair for cell in mine):.3f} of clairvoyant; pays at most "
            f"{max(cell.worst.bound for cell in mine):.2f} of what its bound allows"
        )


def main() -> int:
    """Print the table and its summary; exit 1 when a cell is under a bar, or pays more than the bound from the worst mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=TRACES, help="a folder of traces (*.csv, *.jsonl)")
    parser.add_argument("--model", type=Path, help="a model file; else model.json beside the traces")
    parser.add_argument("--trace", action="append", help="only traces whose name has this in it (repeatable)")
    parser.add_argument("--cost", type=float, action="append", help="only this cost in seconds (repeatable)")
    parser.add_argument("--load", type=float, action="append", help="only this peak load (repeatable)")
    parser.add_argument("--blind", action="store_true", help="do not tell the prior how often each concurrency comes")
    parser.add_argument("--no-queueing", action="store_true", help="leave the replays with queueing out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    begin = time.perf_counter()
    files = sorted(path for path in asked.traces.iterdir() if path.suffix in {".csv", ".jsonl"})
    files = [path for path in files if not asked.trace or any(part in path.name for part in asked.trace)]
    if not files:
        parser.error(f"there is no trace in {asked.traces}")
    cases = [
        Case(
            trace=path, model=asked.model or asked.traces / "model.json", load=load, first=place == 0,
            costs_s=asked.cost or COSTS_S, queueing=not asked.no_queueing, expected=not asked.blind,
        )
        for path in files
        for place, load in enumerate(asked.load or LOADS)
    ]  # fmt: skip
    print(f"{'':<55}|{'from the prior choice':>27} |{'from the worst mode':>27}\n{HEAD}")
    found: list[Cell] = []
    try:
        with concurrent.futures.ProcessPoolExecutor(max_workers=asked.jobs) as pool:
            for part in pool.map(cells, cases):
                found += part
                for cell in part:
                    print(line(cell), flush=True)
    except (UsageError, ValueError) as error:
        parser.error(str(error))
    print()
    print("\n".join(summary(found)))
    print(f"{len(found)} cells in {time.perf_counter() - begin:.0f} s")
    return 1 if any(cell.missed or cell.worst.bound > 1 for cell in found) else 0


if __name__ == "__main__":
    sys.exit(main())
