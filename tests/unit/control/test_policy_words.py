"""What an operator reads of a decision: numbers as people write them."""

from __future__ import annotations

import pytest

from specctl.control.policy_words import figure


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.0123, "0.0123"), (9.67, "9.67"), (99.94, "99.9"), (216.4, "216"), (12345.6, "12,346")],
)
def test_figures_are_readable(value: float, shown: str) -> None:
    """Three figures, whole numbers from a hundred on, never an exponent for what a server serves."""
    assert figure(value) == shown
