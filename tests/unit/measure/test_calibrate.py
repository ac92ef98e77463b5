"""A calibration as a value: what fits into its time, its file read by all who read one, its keeping, its figure."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from specctl.control import calibration
from specctl.control import mode as modes
from specctl.control.crossovers import Answer
from specctl.control.objective import Metric
from specctl.control.replay import service
from specctl.measure import calibrate_figure, calibrate_file
from specctl.measure.calibrate import MOST_WINDOW_S, Pace, TooShortError, planned
from specctl.measure.calibrate_wire import MisreadError, study_of, study_wire
from specctl.measure.sweep import Segment
from specctl_agent.model import Fitted
from tests.unit.measure.calibrate_studies import ASK, EMPTY, FACTS, MODES, WORLD, measured
from tests.unit.measure.sweep_worlds import CHAIN, NONE, TREES

LIVE = Pace(around_s=2.0, switch_s=0.5, by_mode=False)
RESTARTS = Pace(around_s=2.0, switch_s=60.0, by_mode=True)


@pytest.mark.parametrize(
    ("limit_s", "levels"),
    [(60.0, None), (120.0, (1, 64)), (170.0, (1, 8, 64)), (280.0, (1, 4, 16, 64)), (1800.0, (1, 2, 4, 8, 16, 32, 64))],
)
def test_the_grid_is_as_fine_as_the_time_allows(limit_s: float, levels: tuple[int, ...] | None) -> None:
    """A short time has the ends alone, a long one every doubling; what does not fit at all says what would."""
    ask = replace(ASK, limit_s=limit_s, window_s=0.0)
    if levels is None:
        with pytest.raises(TooShortError) as caught:
            planned(MODES, ask, LIVE)
        assert planned(MODES, replace(ask, limit_s=caught.value.needed_s + 0.1), LIVE)[0].grid == (1, 64)
        return
    asked, window_s = planned(MODES, ask, LIVE)
    assert asked.grid == levels
    assert 2.0 <= window_s <= MOST_WINDOW_S
    assert asked.segment_s == window_s + 2.0


def test_restarts_are_in_the_time() -> None:
    """A survey that restarts six times needs six restarts' time before anything is measured."""
    with pytest.raises(TooShortError) as caught:
        planned(MODES, replace(ASK, limit_s=600.0, window_s=0.0), RESTARTS)
    assert caught.value.needed_s > 6 * 60.0 / 0.6
    asked, _ = planned(MODES, replace(ASK, limit_s=3600.0, window_s=0.0), RESTARTS)
    assert (asked.by_mode, asked.switch_s) == (True, 60.0)


def test_the_file_is_read_by_the_agents_model() -> None:
    """Rates, errors, facts and conclusions come back; a fuller name finds its mode, and beyond the measured nothing is known."""
    study = measured()
    read = calibration.parse(json.loads(json.dumps(calibrate_file.content(study))))
    assert (read.holds_for, read.said, read.max_running) == (FACTS, study.said, 64)
    rates = Fitted(read.table)
    found = rates.tokens_s(CHAIN, 4)
    assert found is not None
    assert found.low < WORLD.rate(CHAIN, 4) < found.high
    assert found.high - found.low > 0.04 * found.value
    assert replace(read.table, max_running=None).tokens_s(NONE, 65) is None


def test_the_file_is_a_model_of_simulate() -> None:
    """`simulate --model` reads it as it is."""
    found = service.parse(calibrate_file.content(measured()))
    assert set(found.rates) == set(MODES)
    assert found.max_running == 64


def test_the_conclusion_is_that_of_the_machine() -> None:
    """The tree leads alone, the chain in the middle, and neither at the end: as the machine was made."""
    said = measured(3600.0, noise=0.005).said
    assert said.trees is not None
    assert said.trees.answer is Answer.PAYS
    for each in said.crossovers:
        assert WORLD.best(MODES, each.low) in each.before
        assert WORLD.best(MODES, each.high) in each.after
    assert said.crossovers
    assert said.crossovers[0].before == (TREES[1],)


def test_nothing_measured_is_no_file() -> None:
    """A file without a figure would be none."""
    with pytest.raises(ValueError, match="nothing was measured"):
        calibrate_file.content(EMPTY)


def test_what_is_kept_comes_back() -> None:
    """A study is the same after it was kept, spoiled segments included."""
    study = measured(300.0)
    spoiled = replace(study.segments[0], spoiled="other requests ran", tokens_s=0.0, accept_length=None)
    study = replace(study, segments=(*study.segments, spoiled), releases={"none": "3"})
    assert study_of(json.loads(json.dumps(study_wire(study)))) == study
    assert study.spoiled == (spoiled,)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("ask",), None),
        (("ask", "limit_s"), "long"),
        (("ask", "metric"), "both"),
        (("question", "modes"), ["none"]),
        (("question", "modes"), ["warp", "none"]),
        (("question", "grid"), [4, 2]),
        (("facts",), {"gpu": 8}),
        (("before",), ["1"]),
        (("segments",), [{"mode": "none"}]),
        (("segments",), [3]),
        (("segments", 0, "tokens_s"), 0),
        (("segments", 0, "concurrency"), -1),
        (("max_running",), True),
    ],
)
def test_what_was_not_kept_by_us_is_refused(path: tuple[str | int, ...], value: object) -> None:
    """A damaged or strange file is told, never half believed."""
    fields = copy.deepcopy(study_wire(measured(300.0)))
    place: object = fields
    for step in path[:-1]:
        place = place[step]  # type: ignore[index]  # the path fits
    place[path[-1]] = value  # type: ignore[index]  # likewise
    with pytest.raises(MisreadError):
        study_of(fields)


def test_the_figure_shows_every_mode_and_crossover() -> None:
    """By concurrency a line a mode, with bars and a mark a crossover; by packed tokens each mode at what its step checks."""
    study = measured()
    shown = calibrate_figure.figure(study)
    first, second = shown.panels
    assert [line.label for line in first.lines] == ["none", "dflash", "ddtree"]
    assert len(first.marks) == len(study.said.crossovers)
    assert [point.x for point in second.lines[1].points] == [8 * point.x for point in first.lines[1].points]
    one, whole = first.lines[1].points[-1], second.lines[1].points[-1]
    assert one.y * one.x == pytest.approx(whole.y)
    assert one.low is not None
    assert one.low < one.y
    of_all = calibrate_figure.figure(replace(study, ask=replace(study.ask, metric=Metric.THROUGHPUT))).panels[0]
    assert of_all.lines[1].points[-1].y == whole.y


def test_names_keep_the_knobs_that_tell_modes_apart() -> None:
    """Two trees are told apart by what differs between them; a lone mode of an algo needs no knob."""
    trees = tuple(modes.mode("ddtree", {"block_size": 8, "tree_budget": budget}) for budget in (4, 16))
    study = replace(EMPTY, question=replace(EMPTY.question, modes=(NONE, CHAIN, *trees)))
    assert list(study.names.values()) == ["none", "dflash", "ddtree:tree_budget=4", "ddtree:tree_budget=16"]


def test_spent_time_is_that_of_the_segments() -> None:
    """What was spoiled cost its time all the same."""
    study = measured(300.0)
    more: Segment = replace(study.segments[0], spoiled="other requests ran", took_s=5.0)
    assert replace(study, segments=(*study.segments, more)).spent_s == study.spent_s + 5.0
