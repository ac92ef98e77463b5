"""Hold the agent's policy against schedules that know the future, on request traces: the very decide() of specctl.control.policy.

Every cell is a trace, a peak load (the busiest minute over the best static capacity), the cost of a switch and an objective; the
policy begins in the prior's choice and in the worst mode. `clair`: its worth over that of the clairvoyant schedule from the same
start, exact on the concurrency that the fastest static mode has. `best`: over that of the best static mode. `queue`: with
requests that share the server and wait, its value over the best in hindsight (docs/simulate.md). `gain`: what the clairvoyant
schedule has over the worst static mode; cells under 5 % count for nothing. `!` marks what is under its bar, `~` where the
clairvoyant schedule itself stays under the bar of the best static mode, since the first mode has to be left. `n`: switches.

Usage: python benchmarks/policy.py [--traces DIR] [--model FILE] [--trace NAME …] [--cost S …] [--no-queueing] [--jobs N]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specctl.adapters import trace_files
from specctl.control.objective import Metric, Objective
from specctl.control.replay import compare, ours, sizing
from specctl.control.replay.arrivals import Lengths
from specctl.control.replay.clairvoyant import plan
from specctl.control.replay.compare import Row, Setting
from specctl.control.replay.load import Requests, Series
from specctl.control.replay.outage import LIVE_S, Outage
from specctl.control.replay.worth import Worth

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
    """One trace at one load, and what of it is to be worked out."""

    trace: Path
    model: Path
    load: float
    costs_s: Sequence[float]
    queueing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Our policy from one start: worth over the clairvoyant schedule's and the best static mode's, queueing, switches.

    `reach`: the clairvoyant schedule's worth from this start over the best static mode's: nobody gets further.
    """

    clair: float
    best: float
    reach: float
    queue: float | None
    switches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One line of the table."""

    trace: str
    load: float
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
    worst_mode = compare.worst_mode(alone)
    worst = min(row.score.value for row in alone)
    ratios: list[Ratios] = []
    gain = 0.0
    for start in (ours.prior_choice(setting.service, setting.objective), worst_mode):
        here = replace(setting, start=start)
        known = compare.series_row(here, series, values, "", plan(series, values, start, setting.outage.seconds))
        mine = compare.series_row(here, series, values, "", compare.driven(here, series, ours.maker(here)))
        queue = _queue(here, load, series, fixed, values) if case.queueing and isinstance(load, Requests) else None
        if not ratios:
            gain = known.score.value / worst - 1
        ratios.append(
            Ratios(
                clair=mine.score.value / known.score.value,
                best=mine.score.value / best,
                reach=known.score.value / best,
                queue=queue,
                switches=mine.score.switches,
            )
        )
    return Cell(
        trace=case.trace.stem, load=case.load, cost_s=setting.outage.seconds, metric=setting.objective.metric, gain=gain,
        prior=ratios[0], worst=ratios[1],
    )  # fmt: skip


def _queue(setting: Setting, load: Requests, series: Series, fixed: Sequence[Row], values: Worth) -> float:
    """Return our value over the best in hindsight, both with queueing."""
    mine = compare.queue_row(setting, load, compare.OURS, ours.maker(setting))
    return mine.score.value / compare.in_hindsight(setting, load, series, values, fixed).score.value


def line(cell: Cell) -> str:
    """Return a cell as a line of the table."""
    starts = " |".join(
        _figures(ratios, judged=cell.counts and place == 0) for place, ratios in enumerate((cell.prior, cell.worst))
    )
    gain = f"{cell.gain * 100:>5.0f}%"
    return f"{cell.trace[:25]:<26}{cell.load:>5}{cell.cost_s:>7g}  {cell.metric.value:<10}{gain} |{starts}"


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
        yield (
            f"cost {cost_s:g} s: {sum(cell.missed for cell in mine)} of {len(mine)} cells under a bar; from the prior's choice at "
            f"least {min(cell.prior.clair for cell in mine):.3f} of clairvoyant (bar {CLAIR_BAR}) and "
            f"{min(cell.prior.best for cell in mine):.3f} of the best static mode (bar {STATIC_BAR}); from the worst mode at "
            f"least {min(cell.worst.clair for cell in mine):.3f} of clairvoyant"
        )


def main() -> int:
    """Print the table and its summary; exit 1 when a cell is under a bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=TRACES, help="a folder of traces (*.csv, *.jsonl)")
    parser.add_argument("--model", type=Path, help="a model file; else model.json beside the traces")
    parser.add_argument("--trace", action="append", help="only traces whose name has this in it (repeatable)")
    parser.add_argument("--cost", type=float, action="append", help="only this cost in seconds (repeatable)")
    parser.add_argument("--load", type=float, action="append", help="only this peak load (repeatable)")
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
            trace=path, model=asked.model or asked.traces / "model.json", load=load, costs_s=asked.cost or COSTS_S,
            queueing=not asked.no_queueing,
        )
        for path in files
        for load in asked.load or LOADS
    ]  # fmt: skip
    print(f"{'':<55}|{'from the prior choice':>27} |{'from the worst mode':>27}\n{HEAD}")
    found: list[Cell] = []
    with concurrent.futures.ProcessPoolExecutor(max_workers=asked.jobs) as pool:
        for part in pool.map(cells, cases):
            found += part
            print("\n".join(line(cell) for cell in part), flush=True)
    print()
    print("\n".join(summary(found)))
    print(f"{len(found)} cells in {time.perf_counter() - begin:.0f} s")
    return 1 if any(cell.missed for cell in found) else 0


if __name__ == "__main__":
    sys.exit(main())
