"""What is said of an experiment: a difference, none that matters, or that it cannot be told yet."""

from __future__ import annotations

import pytest

from specctl.measure.ab_fit import Difference
from specctl.measure.ab_result import as_wire, conclude, decided
from specctl.measure.ab_types import quantity
from specctl.measure.ab_verdict import Call, number, worded
from tests.abtrials import trial

A = (110.4, 110.9, 110.1, 110.6)


def said(b: tuple[float, ...], concurrency: tuple[int, ...] = (1,)) -> list[tuple[Call, str]]:
    """Return the verdicts on A's four segments against B's."""
    return [(v.call, v.text) for v in conclude(trial(A, b, concurrency=concurrency)).analysis.verdicts]


def test_a_difference_is_said_with_its_interval_and_its_way() -> None:
    """B's throughput 12 % above A's is told as faster, below as slower."""
    [(call, text)] = said((123.6, 124.1, 123.3, 123.9))
    assert (call, text) == (Call.DIFFERENT, "B is 12.0 % (11.3 … 12.6) faster")
    [(call, text)] = said((99.6, 99.1, 99.3, 99.9))
    assert (call, text) == (Call.DIFFERENT, "B is 10.0 % (9.4 … 10.5) slower")


def test_no_difference_says_what_would_have_been_seen() -> None:
    """Arms that are alike are called so, with the smallest difference that the experiment would have found."""
    [(call, text)] = said((110.2, 110.7, 110.8, 110.3))
    assert call is Call.SAME
    assert text == "no difference; anything over 0.8 % would have been seen"


def test_a_spread_that_hides_what_matters_cannot_tell() -> None:
    """Where the spread would hide 5 %, the verdict is open and says how many more cycles would show it."""
    [(call, text)] = said((96.0, 121.0, 104.0, 117.0))
    assert call is Call.OPEN
    assert text.startswith("cannot tell: the spread is too large; ")
    assert text.endswith(" more cycles would show 5.0 %")


def test_many_comparisons_are_allowed_for() -> None:
    """What is a difference alone is none among many: p grows with the number of primary comparisons."""
    b = (111.2, 111.5, 110.9, 111.6)
    alone, among = conclude(trial(A, b)), conclude(trial(A, b, concurrency=(1, 2, 4, 8)))
    assert alone.analysis.family == 1
    assert among.analysis.family == 4
    one, four = (next(c for c in r.analysis.compared if c.p_family is not None) for r in (alone, among))
    assert one.p_family == pytest.approx(one.difference.p)
    assert four.p_family is not None
    assert four.p_family > one.difference.p


def test_a_figure_that_nobody_tells_is_left_out() -> None:
    """Accept length is compared where it is known, and absent where it is not: never zero."""
    found = conclude(trial(A, A))
    assert {c.key for c in found.analysis.compared} >= {"tokens_s", "accept_length", "power_w"}
    assert decided(found)
    assert as_wire(found)["family"] == 1


@pytest.mark.parametrize(
    ("ratio", "low", "high", "key", "text"),
    [
        (0.12, 0.09, 0.15, "tokens_s", "12 % (9 … 15) faster"),
        (-0.12, -0.15, -0.09, "tokens_s", "12 % (9 … 15) slower"),
        (0.0123, 0.004, 0.02, "tokens_s", "1.2 % (0.4 … 2.0) faster"),
        (0.05, 0.04, 0.06, "ttft_s", "5.0 % (4.0 … 6.0) later"),
    ],
)
def test_words_of_a_difference(ratio: float, low: float, high: float, key: str, text: str) -> None:
    """A difference is told with the way of its own figure, bounds from near to far."""
    found = Difference(ratio=ratio, low=low, high=high, p=0.01, seen=0.03, freedom=5, spread=0.01, drift=0.0)
    assert worded(quantity(key), found) == text


def test_numbers_have_no_negative_zero_and_an_end() -> None:
    """A rounded zero has no sign, a minus is a minus sign, and beyond ten times only that is said."""
    assert [number(-0.0001), number(-0.02), number(40.0)] == ["0.0", "−2.0", ">1000"]
