"""Drafts beside fresh ones, and counts beside tokens: what is lost where the text is right."""

from __future__ import annotations

import pytest

from specctl.doctor.lossless_drafts import Lost, ended_early, judge, thrown_away
from specctl.doctor.lossless_types import Answered, DraftPair, History


def pairs(history: History, count: int, *, same: bool | None, accepted: int = 1, fresh: int = 1) -> list[DraftPair]:
    """Return equal pairs."""
    return [DraftPair(history=history, accepted=accepted, fresh_accepted=fresh, same=same)] * count


def test_drafts_that_differ_only_after_a_move_tell_wrong_features() -> None:
    """The drafter reads wrong features exactly where something had to be gathered."""
    found = judge(
        [
            *pairs(History.MOVED, 20, same=False, fresh=2),
            *pairs(History.FRESH, 20, same=True),
            *pairs(History.STRAIGHT, 5, same=True),
        ]
    )
    assert (found.wrong_features, found.loss, found.moved_differ, found.clean_differ) == (True, 1.0, 20, 0)


def test_equal_drafts_clear_the_features() -> None:
    """A near-tie among many equal drafts is nothing."""
    found = judge(
        [
            *pairs(History.MOVED, 31, same=True),
            *pairs(History.MOVED, 1, same=False),
            *pairs(History.FRESH, 32, same=True),
        ]
    )
    assert found.wrong_features is False


@pytest.mark.parametrize(
    ("moved", "clean", "why"),
    [
        (pairs(History.MOVED, 5, same=False), pairs(History.FRESH, 20, same=True), "too few"),
        (pairs(History.MOVED, 20, same=False), pairs(History.FRESH, 20, same=False), "not repeatable"),
        (
            pairs(History.MOVED, 4, same=False) + pairs(History.MOVED, 28, same=True),
            pairs(History.FRESH, 20, same=True),
            "more than near-ties explain",
        ),
    ],
)
def test_what_does_not_decide_says_why(moved: list[DraftPair], clean: list[DraftPair], why: str) -> None:
    """Too few pairs, drafts that do not repeat, or a share in between: not known."""
    found = judge([*moved, *clean])
    assert found.wrong_features is None
    assert why in found.why


def test_a_loss_of_acceptance_is_told_without_drafts() -> None:
    """Without a trace, steps that accept much less than fresh requests tell it; none that do proves nothing."""
    lossy = pairs(History.AFTER, 20, same=None, fresh=2) + pairs(History.AFTER, 12, same=None)
    assert judge(lossy).wrong_features is True
    assert judge(pairs(History.AFTER, 32, same=None)).wrong_features is None
    assert judge(pairs(History.AFTER, 3, same=None, fresh=5)).wrong_features is None
    assert judge([]).wrong_features is None


def answer(tokens: int, calls: int | None, correct: int | None, *, finish: str = "length", asked: int = 40) -> Answered:
    """Return an answer."""
    return Answered(rid="a", asked=asked, tokens=tokens, verify_calls=calls, correct_drafts=correct, finish=finish)


def test_a_last_step_may_cut_drafts_off() -> None:
    """Right drafts beyond the limit are no loss, up to what one step can accept."""
    found = thrown_away([answer(40, 10, 36)], 7)
    assert found == Lost(requests=1, verify_calls=10, correct=36, tokens=39, lost=0)


def test_drafts_that_never_became_tokens_are_counted() -> None:
    """More missing tokens than the last steps can have cut off were thrown away."""
    found = thrown_away([answer(40, 20, 60), answer(40, 10, 30)], 7)
    assert found is not None
    assert found.lost == 80 - 39 - 7


def test_answers_that_do_not_count_say_nothing() -> None:
    """Without counts there is no judgement."""
    assert thrown_away([answer(40, None, None), answer(0, 1, 1)], 7) is None


def test_requests_that_end_before_their_limit() -> None:
    """Only an answer that says that it reached its limit, and did not, ended early."""
    early = answer(12, 3, 9)
    assert ended_early([answer(40, 10, 30), answer(5, 1, 4, finish="stop"), early]) == (early,)
