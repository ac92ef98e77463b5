"""docs/json.md says of benches what the code prints: the same fields, and null where null can come."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from specctl.cli import bench_run
from specctl.measure import bench_wire
from specctl.measure.bench import METRICS, Bench, Measured, Setting, Subject
from specctl.measure.bench_compare import compare
from specctl.measure.figures import Figures, GpuFigures
from specctl.measure.intervals import Interval, median_of
from specctl.ui import bench_compare as views
from tests.unit.measure.benches import bench, level, one_run
from tests.unit.test_docs_json import TEXT, documented, hold

BARE = Bench(
    id="bench-20261130-020000-abcd",
    at="2026-11-30T02:00:00+00:00",
    subject=Subject(host="gpu1", server="chat", profile="lab"),
    setting=Setting(pace="closed", runs=1, prompts="mixed", prompts_digest="abc"),
    levels=(Measured(name="2.5/s", runs=(Figures(),)),),
)
SUBJECT = Subject(
    host="gpu1", server="chat", profile="lab", mode="none", proven=True, engine_version="1", engine_seed=1, release="1",
    launch_digest="abc", target="big", draft="small", gpus="8× H200", driver="580", kernel="6.1", specctl="0.1.0",
)  # fmt: skip
GPUS = GpuFigures(
    count=8, power_w=1.0, sm_clock_hz=1.0, sm_clock_least_hz=1.0, temperature_c=1.0, busy_ratio=1.0, throttle=("idle",)
)
FULL = bench(
    subject=SUBJECT,
    setting=replace(bench().setting, trace="trace.csv"),
    levels=(level("8", [1.0], runs=(replace(one_run(9.0), gpus=GPUS),)),),
    stopped="interrupted",
    gpu_source="agent",
)


def inside(values: Mapping[str, object], *path: str | int) -> Mapping[str, object]:
    """Return an object inside another."""
    found: object = values
    for key in path:
        found = found[key]  # type: ignore[index]  # a list or an object, as the path says
    assert isinstance(found, Mapping)
    return found


def pairs() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield each documented object as it is with nothing known and with everything."""
    bare, full = bench_wire.as_wire(BARE), bench_wire.as_wire(FULL)
    yield "Bench", bare, full
    yield "BenchSubject", inside(bare, "subject"), inside(full, "subject")
    yield "BenchSetting", inside(bare, "setting"), inside(full, "setting")
    yield "BenchLevel", inside(bare, "levels", 0), inside(full, "levels", 0)
    yield "BenchRun", inside(bare, "levels", 0, "runs", 0), inside(full, "levels", 0, "runs", 0)
    spread = inside(full, "levels", 0, "runs", 0, "ttft")
    yield "Spread", spread, spread
    yield "GpuFigures", dataclasses.asdict(GpuFigures(count=1)), inside(full, "levels", 0, "runs", 0, "gpus")
    yield "Interval", bench_wire.interval_wire(Interval(centre=1.0)), bench_wire.interval_wire(median_of([1.0, 2.0]))
    compared = views.as_wire(compare(bench(), bench()))
    yield "Comparison", compared, compared
    row = inside(compared, "rows", 0)
    yield "ComparedFigure", {**row, "difference_ratio": None}, row


@pytest.mark.parametrize(("heading", "bare", "full"), [pytest.param(*row, id=row[0]) for row in pairs()])
def test_fields_are_documented(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """The table has the object's fields, and says `or null` of exactly those that can be null."""
    hold(heading, bare, full)


def test_plan_has_the_documented_fields() -> None:
    """What a dry run prints has the fields of its table."""
    assert set(documented("BenchPlan")) == set(bench_run.PLAN_FIELDS)


def test_every_figure_is_named() -> None:
    """The text under the levels names each figure of a summary, those of a spread by their first."""
    told = TEXT.partition("\n## BenchLevel\n")[2].partition("\n## ")[0]
    for metric in METRICS:
        name = metric.name
        for part in ("_p50_s", "_p95_s", "_p99_s"):
            name = name.replace(part, "_…") if part in name and not name.startswith("ttft") else name
        name = name.replace("p95", "p50").replace("p99", "p50")
        assert f"`{name}`" in told
