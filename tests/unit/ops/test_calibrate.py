"""Which segments count, and what is said while a calibration goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.calibration_facts import Facts
from specctl.measure.figures import Figures
from specctl.measure.load import Client, Closed, Level, Run, Timing
from specctl.measure.sweep import Place
from specctl.ops import calibrate
from tests.unit.measure.calibrate_studies import EMPTY, measured
from tests.unit.measure.sweep_worlds import CHAIN, NONE

WHOLE = Timing(
    number=1, prompt="code-1", asked_tokens=32, sent_s=0.0, ended_s=1.0, prompt_tokens=20, output_tokens=32, verify_steps=9
)  # fmt: skip
RUN = Run(
    level=Level(pace=Closed(concurrency=1)), timings=(WHOLE,), client=Client(cpu_s=0.1, wall_s=1.0), before=None, after=None
)  # fmt: skip
GOOD = Figures(tokens_s=100.0, requests=3, foreign_requests=0, foreign_tokens=0)
AT = Place(mode=CHAIN, concurrency=1)


@pytest.mark.parametrize(
    ("figures", "run", "place", "why"),
    [
        (GOOD, RUN, AT, None),
        (replace(GOOD, foreign_requests=None, foreign_tokens=None), RUN, AT, None),
        (replace(GOOD, tokens_s=None), RUN, AT, "no steady stretch was measured"),
        (replace(GOOD, tokens_s=None), replace(RUN, stopped="the limit was over"), AT, "the limit was over"),
        (replace(GOOD, failed=2), RUN, AT, "2 requests failed"),
        (replace(GOOD, foreign_requests=3), RUN, AT, "3 requests of others ran"),
        (replace(GOOD, foreign_tokens=40), RUN, AT, "other requests ran"),
        (
            GOOD,
            replace(RUN, timings=(replace(WHOLE, verify_steps=0),)),
            AT,
            "no verify step was counted: the engine does not run dflash:block_size=8",
        ),
        (GOOD, replace(RUN, timings=(replace(WHOLE, verify_steps=None),)), Place(mode=NONE, concurrency=1), None),
    ],
)
def test_a_segment_counts_unless_something_disturbed_it(
    figures: Figures, run: Run, place: Place, why: str | None
) -> None:
    """What is not told is no disturbance; a mode that drafts must have verified, whatever the engine claims."""
    assert calibrate.spoiled(place, run, figures) == why


def test_what_is_known_so_far_is_what_is_certain() -> None:
    """Nothing before anything is; then each stretch with its mode, in the names that tell modes apart."""
    assert calibrate.known_so_far(EMPTY) == ""
    assert calibrate.known_so_far(measured(60.0)) == ""
    assert calibrate.known_so_far(measured()).startswith("best at 1 to 5: ddtree; 6 to ")


def test_the_context_is_the_band_that_was_sent() -> None:
    """From the shortest prompt to the longest prompt with its answer, over all segments."""
    longer = replace(RUN, timings=(replace(WHOLE, prompt_tokens=200), replace(WHOLE, prompt_tokens=None)))
    facts = calibrate.with_context(calibrate.with_context(Facts(), RUN), longer)
    assert facts.context_tokens == (20, 232)
    assert calibrate.with_context(Facts(), replace(RUN, timings=())).context_tokens is None
