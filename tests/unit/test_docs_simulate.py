"""docs/simulate.md, and what docs/json.md says of a simulation, say what the code does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from specctl.adapters import trace_files
from specctl.cli import simulate
from specctl.control.objective import Objective
from specctl.control.replay import choosers, compare, formats, load, ours, outage, service, sizing
from specctl.control.replay.arrivals import Lengths
from specctl.control.replay.compare import Setting
from specctl.control.replay.load import Series
from specctl.control.replay.sizing import Size
from specctl.ui import simulate as views
from tests.unit.control.replay.loads import SERVICE, TREE

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "simulate.md").read_text(encoding="utf-8")
JSON = (DOCS / "json.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`[^|]+`|[A-Z/0-9 ]+) \|", re.MULTILINE)


def part(text: str, heading: str) -> str:
    """Return the part of a page under a heading."""
    found = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert found, heading
    return found


def test_every_format_is_documented() -> None:
    """The table of formats has each header that is known, in order, and the recording."""
    table = TEXT.partition("<!-- formats -->")[2].partition("<!-- end formats -->")[0]
    told = [row.strip("`") for row in ROW.findall(table)]
    assert [header.lower() for header in told[:-1]] == [",".join(names) for names in formats.FORMATS]
    assert isinstance(formats.parse(told[-1]), Series)


def test_every_option_is_documented() -> None:
    """The table of options names each option of the command, and no other."""
    app = typer.Typer()
    simulate.mount(app)
    command = typer.main.get_command(app)
    taken = {name for each in command.params for name in each.opts if name.startswith("--")}
    told = set(re.findall(r"`(--[a-z-]+)", part(TEXT, "Options")))
    assert told == taken - {"--help", "--install-completion", "--show-completion"}


def test_the_example_of_a_model_is_one() -> None:
    """What the page shows as a model file can be read."""
    (example,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert len(service.parse(json.loads(example)).rates) == 3


def test_the_table_of_columns_is_that_of_the_view() -> None:
    """Each column of figures is explained, by its name, and switches explain themselves."""
    told = ROW.findall(part(TEXT, "Two kinds of replay"))
    assert told == [name for name in views.COLUMNS if name not in {"POLICY", "SWITCHES"}]


def test_every_policy_is_documented() -> None:
    """The table of policies has all that a comparison makes."""
    named = {compare.THRESHOLD, compare.HYSTERESIS, compare.OURS, compare.CLAIRVOYANT, compare.HINDSIGHT}
    assert {row.strip("`") for row in ROW.findall(part(TEXT, "Policies"))} == named
    assert all(f"`{name}`" in part(JSON, "Policy") for name in (compare.STATIC, *named))


@pytest.mark.parametrize(
    "words",
    [
        f"a switch stops decoding for {outage.LIVE_S:g} s",
        f"and is away for {outage.RESTART_S:.0f} s",
        f"at most {formats.MOST_ROWS:,} lines and {trace_files.MOST_TRACE_BYTES // 1024**2} MiB",
        f"at most {sizing.MOST_REQUESTS:,} requests",
        f"around {Lengths().prompt:.0f} tokens by the mean",
        f"answers exponential around\n{Lengths().answer:.0f}",
        f"a tenth better for {choosers.HOLD_S:.0f} s",
        f"wait for {choosers.TUNED_HOLDS_S[0]:.0f}, {choosers.TUNED_HOLDS_S[1]:.0f} or {choosers.TUNED_HOLDS_S[2]:.0f} s",
        f"a margin of {choosers.TUNED_MARGINS[0] * 100:.0f} or {choosers.TUNED_MARGINS[1] * 100:.0f} %",
    ],
)
def test_figures_are_current(words: str) -> None:
    """The figures that the page gives are those of the code."""
    assert words in TEXT
    assert (choosers.MARGIN_RATIO, load.COPY_APART_S, len(choosers.TUNED_HOLDS_S) * len(choosers.TUNED_MARGINS)) == (
        0.1,
        0.25,
        6,
    )
    assert sizing.PEAK_WINDOW_S == formats.STEP_S * 60


def fields(heading: str) -> Mapping[str, str]:
    """Return the fields of one of the tables of docs/json.md, each with its type."""
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", part(JSON, heading), re.MULTILINE))


def test_the_fields_of_a_simulation_are_documented() -> None:
    """A simulation and a policy have the fields of their tables, null where these say so and nowhere else."""
    setting = Setting(service=SERVICE, objective=Objective(), outage=outage.LIVE, start=TREE)
    idle = Series(step_s=1.0, levels=[0, 0])
    found = compare.compare(setting, idle, ours.maker, compare.statics(setting, idle))
    bare = views.as_wire(Size(name="a", span_s=2.0), found, found.rows)
    static = replace(found.rows[0], score=replace(found.rows[0].score, value=1.0, mean_s=1.0, p95_s=1.0))
    full = views.as_wire(
        Size(name="a", span_s=2.0, requests=1, peak=0.5), replace(found, free_gain_ratio=0.1), [static]
    )
    busy = replace(found, rows=[static, *found.rows[1:-1], replace(found.yardstick, score=static.score)])
    for heading, empty, filled in (
        ("Simulation", bare, full),
        ("Policy", views.policy_values(found, found.rows[-1]), views.policy_values(busy, static)),
    ):
        told = fields(heading)
        assert set(told) == set(empty) == set(filled)
        assert {name for name, kind in told.items() if kind.endswith("or null")} == {
            name for name, value in empty.items() if value is None
        }
        assert None not in filled.values()
        json.dumps(filled, allow_nan=False)
