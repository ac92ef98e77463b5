"""Gauges that stand still while counters move."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from specctl.doctor import decide, windows
from specctl.doctor.evidence import Evidence, Observation
from specctl.doctor.types import Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity

LEAST_STEPS = 160.0
"""Gauges move each 40 steps: after four intervals they have."""
SAME = 1e-9
LENGTH_APART = 0.02
"""The gauge is of the last window: one that is further than rounding from all of the newest decode lines is of none of them."""
NEWEST = 6


def _stale(evidence: Evidence) -> Verdict:
    """Find gauges that kept their values over LEAST_STEPS steps while what they tell has changed."""
    paged = [one for one in evidence.observations if one.page is not None]
    if len(paged) < 2:
        return Unsure(reason="fewer than two looks at /metrics", decide=decide.METRICS)
    first, last = paged[0], paged[-1]
    steps = windows.steps_between(first, last)
    if steps is None or steps < LEAST_STEPS:
        known = "an unknown number of" if steps is None else f"{steps:.0f}"
        return Unsure(
            reason=f"{known} decode steps between two looks; gauges need {LEAST_STEPS:.0f} to have moved",
            decide=decide.LOAD,
        )
    found = [*_running(paged), *_length(evidence, first, last)]
    if not found:
        return Clear(note=f"{steps:.0f} steps between two looks")
    tokens = windows.counters_move(first, last)
    moved = f"{steps:.0f} decode steps" + ("" if tokens is None else f" and {tokens:.0f} tokens") + " meanwhile"
    return Hit(message=found[0], evidence=(*found[1:], moved))


def _running(paged: Sequence[Observation]) -> list[str]:
    """Return that the running gauge stood still while /v1/loads, as old as it at most, told other numbers each time."""
    told = [(one.page.counters.running, _load(one)) for one in paged if one.page is not None]
    gauges = {gauge for gauge, _ in told if gauge is not None}
    loads = [load for _, load in told if load is not None]
    if len(gauges) != 1 or len(loads) < 2:
        return []
    gauge = next(iter(gauges))
    # A load that is the same at neighbouring looks was so for a whole interval: the gauge had time to say so.
    steady = [one for one, after in pairwise(loads) if one == after]
    if all(abs(load - gauge) > SAME for load in loads) and steady:
        return [f"the gauge says {gauge:.0f} running at each look, and /v1/loads says {steady[-1]}"]
    return []


def _load(one: Observation) -> int | None:
    return None if one.look is None else one.look.load.running


def _length(evidence: Evidence, first: Observation, last: Observation) -> list[str]:
    """Return that the accept length stood still to the last digit, and is of none of the newest log windows."""
    gauges = [one.page.counters.accept_length for one in (first, last) if one.page is not None]
    if None in gauges or len(set(gauges)) != 1 or evidence.log is None:
        return []
    gauge = gauges[0] or 0.0
    newest = [one.decode.accept_length for one in evidence.log.windows[-NEWEST:] if one.decode is not None]
    told = [length for length in newest if length is not None]
    if len(told) < 2 or any(abs(length - gauge) <= LENGTH_APART for length in told):
        return []
    return [f"spec_accept_length is {gauge:.2f} at both looks, and the newest decode lines say {told[-1]:.2f}"]


CHECKS = CheckSet(
    name="gauges",
    title="Gauges and counters",
    checks=(
        Check(
            id="M022",
            title="gauges are stale while counters move",
            meaning="Gauges keep old values: an engine that decodes and does not refresh them shows a load that is long gone.",
            looks_at="two pages of /metrics beside /v1/loads and the newest decode lines",
            effect="none on tokens; dashboards and whoever decides by gauges are wrong",
            remedy="Read counters and /v1/loads (specctl does); report the gauges of this build.",
            severity=Severity.WARNING,
            judge=_stale,
        ),
    ),
)
