"""Greedy answers held against each other: equal, parted by near ties, or not lossless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specctl.measure.ab_outputs import agreement, said
from specctl.measure.ab_types import Output, Segment
from tests.abtrials import segment

Said = Sequence[tuple[Sequence[int], Sequence[float]]]


def segments(rows: Sequence[tuple[int, Sequence[int], Sequence[float]]]) -> list[Segment]:
    """Return segments of arms with one answer each."""
    return [
        replace(segment(place, arm, 100.0), outputs=(Output(prompt="p1", tokens=tokens, gaps=gaps),))
        for place, (arm, tokens, gaps) in enumerate(rows)
    ]


def words(rows: Sequence[tuple[int, Sequence[int], Sequence[float]]], *, exact: bool) -> str:
    """Return what is said of A against B."""
    made = segments(rows)
    return said(agreement(made, 0, 1), agreement(made, 0, 0), exact=exact, letters="AB")


def test_equal_answers_are_said_to_be() -> None:
    """Answers that are the same in every pair of segments are equal, token for token."""
    rows = [(0, (1, 2, 3), ()), (1, (1, 2, 3), ()), (1, (1, 2, 3), ()), (0, (1, 2, 3), ())]
    assert words(rows, exact=True) == "greedy answers of A and B are equal, token for token (4 pairs)"


def test_an_exact_engine_that_parts_is_not_lossless() -> None:
    """Where the engine computes alike every time and A never parts from itself, a parting is a wrong token."""
    rows = [(0, (1, 2, 3), ()), (1, (1, 9, 3), ()), (0, (1, 2, 3), ())]
    assert words(rows, exact=True) == (
        "2 of 2 pairs of greedy answers of A and B part, the first at token 2: on this engine they must not, so one of the two "
        "is not lossless"
    )


def test_near_ties_are_held_against_the_arm_itself() -> None:
    """On GPUs the gap at the parting is told, and how often A parts from itself over starts."""
    rows = [(0, (1, 2, 3), (5.0, 0.01, 2.0)), (1, (1, 9, 3), ()), (0, (1, 2, 4), (5.0, 0.03, 0.02))]
    assert words(rows, exact=False) == (
        "2 of 2 pairs of greedy answers of A and B part, the first at token 2, median gap 0.020 nat; A parts from itself over "
        "starts in 1 of 1"
    )


def test_an_answer_that_ends_early_parts_there() -> None:
    """A shorter answer parts where it ends, and no gap is invented there."""
    made = segments([(0, (1, 2, 3), ()), (1, (1, 2), ())])
    (parting,) = agreement(made, 0, 1).partings
    assert (parting.at, parting.gap) == (2, None)


def test_nothing_asked_is_nothing_said() -> None:
    """Without answers to a common prompt there is nothing to compare."""
    made = [replace(one, outputs=()) for one in segments([(0, (1,), ()), (1, (1,), ())])]
    assert (
        said(agreement(made, 0, 1), agreement(made, 0, 0), exact=True, letters="AB") == "no greedy answers to compare"
    )
