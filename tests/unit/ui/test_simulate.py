"""A simulation as people read it: fit for any width, in the units that people think in."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from specctl.control.objective import Objective
from specctl.control.replay import compare, ours, sizing
from specctl.control.replay.compare import OURS, Comparison, Setting
from specctl.control.replay.load import Requests, Series
from specctl.control.replay.outage import LIVE
from specctl.ui import simulate as views
from specctl.ui.theme import console
from tests.unit.control.replay.loads import SERVICE, TREE, requests

SETTING = Setting(service=SERVICE, objective=Objective(), outage=LIVE, start=TREE)
SERIES = Series(step_s=1.0, levels=[1, 4, 8, 0] * 60)
LOAD = requests(*((number / 2, 100, 40) for number in range(120)))


def compared(load: Requests | Series) -> Comparison:
    """Compare on a load."""
    return compare.compare(SETTING, load, ours.maker, compare.statics(SETTING, load))


def shown(load: Requests | Series, width: int) -> list[str]:
    """Return the lines that are printed at a width."""
    stream = io.StringIO()
    found = compared(load)
    out = console(file=stream, width=width)
    out.print(views.view(sizing.size("a.csv", load, SERVICE), found, found.rows, width=width))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("load", [SERIES, LOAD], ids=["series", "requests"])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit_and_every_policy_is_named(load: Requests | Series, width: int) -> None:
    """At any width lines fit, no figure is cut off, and each policy and the yardstick's mark are there."""
    lines = shown(load, width)
    assert max(len(line) for line in lines) <= width
    assert "…" not in "".join(lines)
    for name in ("none", "dflash", "ddtree:tree_budget=16", "threshold", "hysteresis", "agent"):
        assert [line for line in lines if line.startswith(name)]
    assert [line for line in lines if line.startswith(("clairvoyant *", "hindsight *"))]


def test_narrow_terminals_lose_columns_but_not_regret() -> None:
    """Below 72 columns the percentile and the minutes lost are left out."""
    head = next(line for line in shown(SERIES, 60) if line.startswith("POLICY"))
    assert head.split() == ["POLICY", "MS/TOKEN", "TOKENS", "SWITCHES", "REGRET"]


@pytest.mark.parametrize(("value", "text"), [(None, "—"), (0.0123, "12.3"), (0.99, "990.0"), (3.1224, "3122")])
def test_times_are_milliseconds(value: float | None, text: str) -> None:
    """A time per token is in milliseconds, and — where not one token was served."""
    assert views.milliseconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (9999.4, "9999"), (12_345.0, "12.35 k"), (47_801_234.0, "47.8 M"), (1.5e12, "1500 G")],
)
def test_tokens_are_counted_in_round_figures(value: float, text: str) -> None:
    """Four figures or so, with k, M or G."""
    assert views.tokens(value) == text


def test_who_beats_the_yardstick_is_said_to() -> None:
    """A policy with a negative regret did better than the best that was tried in hindsight, and the words say so."""
    found = compared(LOAD)
    mine = next(row for row in found.rows if row.policy == OURS)
    better = replace(mine, score=replace(mine.score, value=found.yardstick.score.value * 1.25))
    rows = [better if row is mine else row for row in found.rows]
    assert (
        views.summary(replace(found, rows=rows))
        .splitlines()[-1]
        .startswith("agent              beats the yardstick by 25.0 %")
    )


def test_a_load_without_tokens_has_no_regret() -> None:
    """Where nothing was served there is nothing to miss: unknown is —, and no number is made up."""
    lines = shown(Series(step_s=1.0, levels=[0] * 10), 80)
    row = next(line for line in lines if line.startswith("agent"))
    assert row.split() == ["agent", "—", "—", "0", "0", "0.0", "—"]
