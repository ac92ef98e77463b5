"""When a load will be over: from past loads, the phase's own rate, and honestly late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specctl.rollout import eta
from specctl.rollout.gate_types import PastLoad, Phase, PhaseSpan
from tests.unit.rollout.replay import spec_for

PAST = PastLoad(
    total_s=480.0,
    phases=(
        PhaseSpan(phase=Phase.START, began_s=0.0, took_s=30.0),
        PhaseSpan(phase=Phase.TARGET_WEIGHTS, began_s=30.0, took_s=300.0),
        PhaseSpan(phase=Phase.GRAPHS, began_s=330.0, took_s=120.0),
        PhaseSpan(phase=Phase.WARMUP, began_s=450.0, took_s=30.0),
    ),
)


def remaining(
    past: tuple[PastLoad, ...], elapsed_s: float, phase: Phase, in_phase_s: float, progress: float | None
) -> float | None:
    """Ask with positional arguments."""
    spec = spec_for(past_loads=past)
    return eta.remaining_s(spec, elapsed_s=elapsed_s, phase=phase, phase_elapsed_s=in_phase_s, progress=progress)


def test_no_past_load_gives_no_eta() -> None:
    """A rate of one phase says nothing about the phases to come."""
    assert remaining((), 100.0, Phase.TARGET_WEIGHTS, 70.0, 0.5) is None


def test_a_phase_without_progress_goes_by_its_past_length() -> None:
    """What is left of the phase by its usual length, and all that follows it."""
    assert remaining((PAST,), 400.0, Phase.GRAPHS, 70.0, None) == 50.0 + 30.0


def test_progress_corrects_the_past_the_more_the_further_it_is() -> None:
    """At 90 % today's rate outweighs the usual length nine to one."""
    left = remaining((PAST,), 570.0, Phase.TARGET_WEIGHTS, 540.0, 0.9)
    assert left is not None
    assert abs(left - (0.9 * 60.0 + 0.1 * 0.0 + 150.0)) < 1e-6


def test_a_late_phase_moves_the_end_away() -> None:
    """A phase that is over its usual length by a minute is expected to take a quarter of that more, at least."""
    assert remaining((PAST,), 0.0, Phase.WARMUP, 90.0, None) == 15.0


def test_totals_alone_count_down() -> None:
    """With totals only, the median of the last five is what is expected, never less than today's rate asks."""
    past = tuple(PastLoad(total_s=total) for total in (9000.0, 480.0, 490.0, 470.0, 480.0, 500.0))
    assert remaining(past, 100.0, Phase.START, 100.0, None) == 380.0
    assert remaining(past, 400.0, Phase.TARGET_WEIGHTS, 380.0, 0.5) == 380.0


@given(
    st.lists(st.floats(-10.0, 1e5), max_size=4),
    st.floats(0.0, 1e5),
    st.sampled_from(list(Phase)),
    st.floats(0.0, 1e5),
    st.one_of(st.none(), st.floats(0.0, 1.0)),
)
def test_it_is_never_negative(
    totals: list[float], elapsed_s: float, phase: Phase, in_phase_s: float, progress: float | None
) -> None:
    """Whatever the past and the progress, the end is not in the past."""
    left = remaining((PAST, *(PastLoad(total_s=total) for total in totals)), elapsed_s, phase, in_phase_s, progress)
    assert left is not None
    assert left >= 0.0
