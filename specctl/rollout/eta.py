"""Say when a load will be over, from this host's own past loads and from how far the phase has come.

Pure; called by rollout/gate.py. Without a past load there is no answer: nobody can know the phases that are still to come. A load
that is late gets an end that moves away with it, never one in the past.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from specctl.rollout.gate_types import GateSpec, PastLoad, Phase

RECENT_LOADS = 5
_LATE_SHARE = (
    0.25  # a load late by L is expected to take L/4 more: it shrinks while it is right, grows while it is wrong
)
_TRUSTED_RATIO = 0.03  # before that a rate is noise


def remaining_s(
    spec: GateSpec, *, elapsed_s: float, phase: Phase, phase_elapsed_s: float, progress: float | None
) -> float | None:
    """Return the expected seconds until ready, None where there is no past load to go by."""
    recent = [load for load in spec.past_loads if load.total_s > 0][-RECENT_LOADS:]
    if not recent:
        return None
    by_rate = _by_rate(phase_elapsed_s, progress)
    after = _after(recent, phase)
    if after is not None:
        expected = _blend(max(after[0] - phase_elapsed_s, 0.0), by_rate, progress) + after[1]
        late = phase_elapsed_s - after[0] if by_rate is None else 0.0
    else:
        usual = statistics.median(load.total_s for load in recent)
        expected = max(usual - elapsed_s, by_rate or 0.0)
        late = elapsed_s - usual
    return max(expected, _LATE_SHARE * late, 0.0)


def usual_s(spec: GateSpec) -> float | None:
    """Return the longest of the recent loads, None where there is none."""
    recent = [load.total_s for load in spec.past_loads if load.total_s > 0][-RECENT_LOADS:]
    return max(recent) if recent else None


def _by_rate(phase_elapsed_s: float, progress: float | None) -> float | None:
    if progress is None or progress < _TRUSTED_RATIO or phase_elapsed_s <= 0:
        return None
    return phase_elapsed_s * (1.0 - progress) / progress


def _blend(by_past: float, by_rate: float | None, progress: float | None) -> float:
    """Trust the rate of today the more, the further the phase has come."""
    if by_rate is None or progress is None:
        return by_past
    return progress * by_rate + (1.0 - progress) * by_past


def _after(recent: Sequence[PastLoad], phase: Phase) -> tuple[float, float] | None:
    """Return the usual length of this phase and of all that follows; None where no past load recorded this phase."""
    lengths: list[float] = []
    rests: list[float] = []
    for load in recent:
        span = next((span for span in load.phases if span.phase is phase and span.took_s is not None), None)
        if span is None or span.took_s is None:
            continue
        lengths.append(span.took_s)
        rests.append(max(load.total_s - span.began_s - span.took_s, 0.0))
    return (statistics.median(lengths), statistics.median(rests)) if lengths else None
