"""An experiment is kept as JSON and read back whole; what was damaged is refused, never half read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.measure.ab_diff import Deviation
from specctl.measure.ab_trial import Trial, changed
from specctl.measure.ab_types import Around, Output
from specctl.measure.ab_wire import MisreadError, trial_of, trial_wire
from tests.abtrials import trial, with_segment

WHOLE = trial((100.0, 101.0, 100.5, 100.2), (100.3, 100.9, 100.1, 100.6), concurrency=(1, 8))


def again(kept: Trial) -> Trial:
    """Return what comes back of a trial that was written to a file."""
    found = json.loads(json.dumps(trial_wire(kept), allow_nan=False))
    assert isinstance(found, dict)
    return trial_of(found)


def test_a_trial_comes_back_as_it_was() -> None:
    """Every field survives the file, unknown ones as unknown."""
    odd = replace(
        WHOLE.segments[2],
        load_s=None,
        settled=None,
        around=Around(),
        outputs=(Output(prompt="p1", tokens="text", gaps=(0.5,)), Output(prompt="p2", tokens=(7, 8))),
    )
    deviation = Deviation(kind="flag", name="--page-size", a=None, b="1", origin="command line")
    kept = replace(with_segment(WHOLE, 2, odd), beside=(deviation,), resumed=2, exact=True, gpu=False, named=None)
    assert again(kept) == kept


def test_an_interrupted_trial_comes_back_with_its_segments() -> None:
    """The segments that are done are kept, and it is known to be unfinished."""
    kept = replace(WHOLE, segments=WHOLE.segments[:3])
    assert again(kept) == kept
    assert not again(kept).done


@given(st.data())
def test_a_damaged_trial_is_refused_or_read_whole(data: st.DataObject) -> None:
    """A file with any one value replaced is refused with MisreadError, or is still an experiment whose order fits its arms."""
    row = trial_wire(WHOLE)
    name = data.draw(st.sampled_from(sorted(row)))
    row[name] = data.draw(st.sampled_from([None, 7, "text", [], {}, [[1]], [{"place": 3}], True]))
    try:
        found = trial_of(row)
    except MisreadError:
        return
    assert all(arm < len(found.arms) for arm in found.order)
    assert [each.arm for each in found.segments] == list(found.order[: len(found.segments)])


def test_what_changed_since_is_told() -> None:
    """A flag, a variable, a package and the prompts that are no longer as they were are each named."""
    arm = replace(WHOLE.arms[1], words=(*WHOLE.arms[1].words, "--page-size", "1"), env={})
    now = replace(WHOLE, arms=(WHOLE.arms[0], arm), facts={"GPU 0": "RTX PRO 6000", "prompts": "0" * 12})
    assert changed(WHOLE, WHOLE) == ()
    assert changed(WHOLE, now) == (
        "arm B: --page-size was absent and is 1",
        "arm B: TREE was 1 and is absent",
        "prompts was 8ba84c7fa7e0 and is 000000000000",
    )


def test_a_third_arm_more_or_less_is_another_experiment() -> None:
    """An experiment does not go on with another number of arms."""
    assert changed(WHOLE, replace(WHOLE, arms=WHOLE.arms[:1])) == ("there were 2 arms and are 1",)


@pytest.mark.parametrize("name", ["ask", "order", "before", "pairs", "arms"])
def test_a_part_that_is_missing_is_named(name: str) -> None:
    """Without one of its parts a trial is no trial."""
    row = trial_wire(WHOLE)
    del row[name]
    with pytest.raises(MisreadError):
        trial_of(row)
