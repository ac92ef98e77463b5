"""The bounds of the policy: what they allow by the length of a change, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.limits import Limits

LIMITS = Limits()


@pytest.mark.parametrize(
    ("seconds", "enough"),
    [(0.1, (1.0, 1.0)), (1.0, (1.0, 1.0)), (5.0, (1.0, 4.0)), (60.0, (0.4, 4.0)), (480.0, (0.4, 4.0))],
)
def test_patience_goes_by_the_length_of_the_change(seconds: float, enough: tuple[float, float]) -> None:
    """What follows each second, what bursts tempt, and what the hours of a day undo have a patience each."""
    assert LIMITS.enough(seconds) == enough


@pytest.mark.parametrize(
    ("name", "value"), [("least", 5.0), ("least", 0.0), ("quick", 0.0), ("large_ratio", 1.5), ("stale_s", -1.0)]
)
def test_limits_that_contradict_themselves_are_refused(name: str, value: float) -> None:
    """Patience that is upside down, times below zero and ratios above one are no limits."""
    with pytest.raises(ValueError, match="patience" if name in {"least", "quick"} else name):
        replace(LIMITS, **{name: value})  # type: ignore[arg-type]  # each of them is a float
