"""The figures of a run for a comparison: what depends on the prompts is taken over the requests that every arm sends; pure.

A faster arm sends more requests in the same window, and other prompts have other accept lengths: over all that were sent, two
arms that decode alike would differ. The first `rounds` requests of each slot are the same in every arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from specctl.measure.figures import Figures, acceptance, figures
from specctl.measure.load import Closed, Run, Timing


def planned(run: Run) -> Sequence[Timing]:
    """Return the requests of a closed loop that a run sends however fast the engine is; only those that are whole."""
    level = run.level
    assert isinstance(level.pace, Closed), "an experiment keeps so many requests in flight"
    slots = level.pace.concurrency
    wanted = range(level.warmup * slots, (level.warmup + level.rounds) * slots)
    return [each for each in run.timings if each.number in wanted and each.whole]


def figures_for(run: Run) -> Figures:
    """Return a run's figures, with accept length, verify steps and prompt length over the planned requests."""
    asked = planned(run)
    length, steps_s = acceptance(asked)
    prompts = [each.prompt_tokens for each in asked if each.prompt_tokens is not None]
    return replace(
        figures(run),
        accept_length=length,
        verify_steps_s=steps_s,
        prompt_tokens=fmean(prompts) if prompts and len(prompts) == len(asked) else None,
    )
