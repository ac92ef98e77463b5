"""A change is on trial: within a window of load its gain must show in what was measured, else it goes back once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specctl.control.limits import Limits
from specctl.control.policy_state import Freeze, State
from specctl.control.policy_types import View

WINDOWS_TO_MEASURE = 4.0
"""When so many windows of load pass and less than one of them was measured, the gain cannot be shown."""
EVEN = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the gain shows; `measured`: false where it could not be told."""

    shows: bool
    measured: bool
    reason: str
    inputs: Mapping[str, float | str | None] = field(default_factory=dict)


def watched(state: State, view: View, seconds: float, limits: Limits) -> State:
    """Count a stretch into the trial while load is there; end it where the gain shows, and freeze where it cannot be measured."""
    trial, rates, concurrency = state.trial, view.rates, view.concurrency
    if trial is None or rates is None or not concurrency or view.mode is None or judged(state, limits) is not None:
        return state
    trial = replace(trial, seconds=trial.seconds + seconds)
    new, old = rates.tokens_s(view.mode, concurrency), rates.tokens_s(trial.old, concurrency)
    if view.tokens_s is not None and new is not None and old is not None:
        trial = replace(
            trial,
            measured_s=trial.measured_s + seconds,
            measured=trial.measured + view.tokens_s * seconds,
            expected_old=trial.expected_old + old.value * seconds,
            expected_new=trial.expected_new + new.value * seconds,
        )
    state = replace(state, trial=trial)
    verdict = judged(state, limits)
    if verdict is None or (verdict.measured and not verdict.shows):
        return state
    if verdict.shows:
        return replace(state, trial=None)
    return replace(state, trial=None, frozen=Freeze(reason=verdict.reason, left_s=limits.freeze_s))


def judged(state: State, limits: Limits) -> Verdict | None:
    """Return whether the gain of the change on trial shows; None while the window is not over, or nothing is on trial."""
    trial = state.trial
    if trial is None:
        return None
    if trial.measured_s < limits.trial_s:
        if trial.seconds < limits.trial_s * WINDOWS_TO_MEASURE:
            return None
        return Verdict(shows=False, measured=False, reason="the gain of the last change could not be measured")
    gain = trial.expected_new - trial.expected_old
    wanted = trial.expected_old + limits.trial_ratio * max(gain, 0.0) if gain > 0 else trial.expected_new
    shows = trial.measured >= wanted * (1 - EVEN)
    rate, old = trial.measured / trial.measured_s, trial.expected_old / trial.measured_s
    reason = (
        f"{state.mode} gave {rate:.0f} tokens/s over {trial.measured_s:.0f} s of load, "
        f"{trial.old} would have given {old:.0f}, and {wanted / trial.measured_s:.0f} were wanted"
    )
    inputs = {"measured_tokens_s": rate, "old_tokens_s": old, "wanted_tokens_s": wanted / trial.measured_s}
    return Verdict(shows=shows, measured=True, reason=reason, inputs=inputs)
