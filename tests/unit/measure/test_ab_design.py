"""The order of an experiment's segments: balanced, mirrored, and free of straight drift."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.measure import ab_design


def test_two_arms_go_there_and_back_and_then_the_other_way() -> None:
    """Two cycles of two arms are ABBA BAAB."""
    assert ab_design.letters(ab_design.order(2, 2, seed=0), 2) == "ABBA BAAB"


@given(arms=st.integers(2, 3), cycles=st.integers(1, 6), seed=st.integers(0, 1000))
def test_straight_drift_weighs_on_every_arm_alike(arms: int, cycles: int, seed: int) -> None:
    """Every arm comes twice a cycle, and the mean place of each is the same."""
    order = ab_design.order(arms, cycles, seed)
    places = [[at for at, arm in enumerate(order) if arm == each] for each in range(arms)]
    assert {len(found) for found in places} == {2 * cycles}
    assert len({sum(found) / len(found) for found in places}) == 1


def test_bent_drift_cancels_over_two_cycles() -> None:
    """ABBA BAAB has the same sum of squared places for both arms."""
    order = ab_design.order(2, 2, seed=0)
    assert sum(at**2 for at, arm in enumerate(order) if arm == 0) == sum(
        at**2 for at, arm in enumerate(order) if arm == 1
    )


def test_the_seed_draws_the_first_arm() -> None:
    """Another seed may begin with the other arm, the same one never does."""
    assert {ab_design.order(2, 1, seed)[0] for seed in range(20)} == {0, 1}
    assert ab_design.order(3, 2, 7) == ab_design.order(3, 2, 7)


@pytest.mark.parametrize(("arms", "cycles"), [(1, 1), (2, 0)])
def test_no_experiment_of_less(arms: int, cycles: int) -> None:
    """One arm, or no cycle, is refused."""
    with pytest.raises(ValueError, match="two arms"):
        ab_design.order(arms, cycles, 0)
