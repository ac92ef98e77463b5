"""An experiment on the screen and as a report: what it costs before it begins, and what it found, in one screen."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.measure import ab_plot
from specctl.measure.ab_diff import Deviation
from specctl.measure.ab_result import as_wire, conclude
from specctl.measure.ab_trial import Trial
from specctl.ui import ab, ab_report
from specctl.ui.theme import console
from tests.abtrials import segment, trial, with_run, with_segment

GOLDEN = Path(__file__).parents[2] / "golden"
WHOLE = trial((110.4, 110.9, 110.1, 110.6), (110.2, 110.7, 110.8, 110.3))
PAGE_SIZE = Deviation(
    kind="flag", name="--page-size", a="64", b="1", origin="ddtree implies it in engine profile fork-0.5"
)


def shown(view: object, width: int) -> str:
    """Return what a console of that width shows, without spaces at the ends of lines."""
    out = io.StringIO()
    console(file=out, width=width).print(view)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_the_plan_says_all_before_it_asks() -> None:
    """Arms, the one difference, the order, what is sent, the cost in minutes, and what is brought back."""
    text = shown(ab.plan_view(replace(WHOLE, segments=()), ab.cost_text(9, 480.0, 600.0), width=100), 100)
    assert text == (
        """ct200 · k26 · experiment ab-20261129-100000-0a1b

  A          dflash:block_size=8
  B          ddtree:tree_budget=7
  differs    speculative algorithm (dflash → ddtree) alone
  order      ABBA BAAB: 8 segments, each a fresh start (A, B balanced over time)
  sends      512 tokens a request, greedy, mixed prompts; 1 at once; 3 runs of 4 requests a slot,
               after 1 for warm-up
  cost       about 82 min: 9 loads of 8 min, during which nothing is served, and about 10 min of
               measuring
  after      release 3, dflash, is brought back, also on failure and on Ctrl-C
"""
    )


def test_what_else_differs_stands_in_the_plan() -> None:
    """A confounded experiment lists every other difference, and does not say alone; what is done is told when it goes on."""
    text = shown(
        ab.plan_view(replace(WHOLE, beside=(PAGE_SIZE,), segments=WHOLE.segments[:3]), "little", width=None), 200
    )
    assert "differs    speculative algorithm (dflash → ddtree)\n" in text
    assert "  and        --page-size: 64 → 1 (ddtree implies it in engine profile fork-0.5)" in text
    assert "  done       3 of 8 segments, kept" in text


def test_a_cost_that_nobody_knows_is_said() -> None:
    """Without a load on record the number of loads is told, and no minutes are invented."""
    assert ab.cost_text(9, None, 90.0) == "9 loads (no load of this host is on record) and about 2 min of measuring"


def test_the_result_is_one_screen() -> None:
    """Figures with differences, the verdict, the answers, what was ruled out."""
    text = shown(ab.result_view(conclude(WHOLE), width=100), 100)
    assert (
        """1 at once
  FIGURE                      A         B  DIFFERENCE  95 % INTERVAL  WOULD BE SEEN
  tok/s                   110.5     110.5       0.0 %  (−0.6 … +0.6)     over 0.8 %
"""
        in text
    )
    assert "  verdict    no difference; anything over 0.8 % would have been seen\n" in text
    assert "  answers    greedy answers of A and B are equal, token for token (16 pairs)\n" in text
    assert text.rstrip().endswith("restarts; not ruled out: —")
    assert len(text.splitlines()) <= 24


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_narrow_terminal_loses_columns_and_no_meaning(width: int) -> None:
    """At any width the figures, the difference and the verdict stand; no line is longer."""
    text = shown(ab.result_view(conclude(WHOLE), width=width), width)
    assert "DIFFERENCE" in text
    assert "no difference; anything over 0.8 %" in text
    assert ("95 % INTERVAL" in text, "WOULD BE SEEN" in text) == (width >= 72, width >= 90)
    assert max(len(line) for line in text.splitlines()) <= width


def disturbed() -> Trial:
    """Return the experiment with a second segment that answered others too, on a host that tells no processors."""
    one = WHOLE.segments[1]
    run = replace(one.levels[0].runs[0], foreign_requests=3.0)
    blank = replace(one.around, foreign_cores=None)
    return with_segment(WHOLE, 1, replace(with_run(one, run), around=blank))


def test_what_was_found_and_what_is_not_known_stand_apart() -> None:
    """A confounder that was found, and one that nobody can know, are each told with their evidence."""
    text = shown(ab.result_view(conclude(disturbed()), width=100), 100)
    assert "  FOUND      other requests: the server answered others during segment 2 (B) (3)" in text
    assert "  not known  other load on the processors: the host does not tell what its processors do" in text


def test_each_comparison_of_three_arms_says_what_it_is_of() -> None:
    """With a third arm the algorithm alone, its flags alone and both together are told apart, on the screen and in the report."""
    arms = (*WHOLE.arms, replace(WHOLE.arms[0], letter="C", note="A with what ddtree implies"))
    order = (0, 1, 2, 2, 1, 0)
    values = (110.4, 110.7, 108.1, 108.3, 110.2, 110.9)
    segments = tuple(segment(place, arm, values[place]) for place, arm in enumerate(order))
    whole = replace(WHOLE, arms=arms, order=order, pairs=((2, 1), (0, 2), (0, 1)), segments=segments)
    for text in (shown(ab.result_view(conclude(whole), width=100), 100), ab_report.markdown(conclude(whole))):
        for pair in (
            "B against C, the algorithm alone",
            "C against A, the flags that come with it alone",
            "B against A, both together",
        ):
            assert pair in text


def test_the_report_is_as_it_was() -> None:
    """The whole report, with everything that can stand in one, is the golden file's."""
    whole = replace(disturbed(), beside=(PAGE_SIZE,), resumed=1)
    text = ab_report.markdown(conclude(whole), plots=[("every segment", "r-segments.svg")])
    golden = GOLDEN / "ab-report.md"
    assert text == golden.read_text(encoding="utf-8")


def test_an_unfinished_report_says_so() -> None:
    """A report of what is done so far names how to go on."""
    text = ab_report.markdown(conclude(replace(WHOLE, segments=WHOLE.segments[:5])))
    assert "**Unfinished: 5 of 8 segments.** `specctl ab --resume ab-20261129-100000-0a1b` goes on." in text


def test_plots_hold_every_segment_and_every_difference() -> None:
    """One panel a concurrency with each arm's segments in their places; one with each figure's difference and its interval."""
    whole = trial((110.4, 110.9, 110.1, 110.6), (110.2, 110.7, 110.8, 110.3), concurrency=(1, 8))
    drawn = ab_plot.segments(conclude(whole))
    assert [panel.title for panel in drawn.panels] == ["1 at once", "8 at once"]
    places = [[point.x for point in line.points] for line in drawn.panels[0].lines]
    assert places == [[1.0, 4.0, 6.0, 7.0], [2.0, 3.0, 5.0, 8.0]]
    (panel,) = ab_plot.differences(conclude(whole)).panels
    assert [line.label for line in panel.lines] == ["1 at once", "8 at once"]
    assert [mark.text for mark in panel.marks] == [
        "tok/s",
        "a request",
        "TTFT",
        "ITL",
        "ITL p99",
        "accept",
        "steps/s",
        "power",
    ]
    assert all(
        p.low is not None and p.high is not None and p.low <= p.y <= p.high for line in panel.lines for p in line.points
    )


def test_the_json_is_json() -> None:
    """What --json prints has no value that JSON lacks, whatever was measured."""
    for whole in (WHOLE, disturbed(), replace(WHOLE, segments=())):
        json.dumps(as_wire(conclude(whole)), allow_nan=False)
