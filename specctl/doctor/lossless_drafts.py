"""Judge drafts and counts where tokens are right: a drafter fed the wrong features, accepted drafts that are not committed. Pure.

What a drafter deserves is what it does for a fresh request with the same text: the same tokens, read by a prefill, give it the
right features. A running request's drafts must be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specctl.doctor.lossless_types import Answered, DraftPair, History

LEAST_PAIRS = 12
"""Pairs on each side without which nothing is said."""
MOVED_DIFFER = 0.25
"""Share of different drafts after a path that had to be moved from which it is no accident."""
CLEAN_DIFFER = 0.05
"""Share of different drafts that near-ties explain: features of two kernels differ in the last digits."""
LEAST_LOSS = 0.2
"""Tokens a step that a running request must accept less than fresh ones for it to be told without a trace."""
SPREADS = 3.0
"""How many standard errors a loss must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """Drafts of running requests beside those of fresh ones, by whether their cache had to be moved.

    `loss`: accepted drafts a step that running requests lack, None where nothing was compared. `wrong_features`: whether the
    drafter is fed wrong features after a move; None where the evidence does not decide.
    """

    clean: int = 0
    clean_differ: int = 0
    moved: int = 0
    moved_differ: int = 0
    loss: float | None = None
    wrong_features: bool | None = None
    why: str = ""


def judge(pairs: Sequence[DraftPair]) -> Drafts:
    """Compare; only for an engine whose tokens are right."""
    told = [pair for pair in pairs if pair.same is not None]
    moved = [pair for pair in told if pair.history is History.MOVED]
    clean = [pair for pair in told if pair.history in {History.FRESH, History.STRAIGHT}]
    if not told:
        return _by_acceptance(pairs)
    found = Drafts(clean=len(clean), clean_differ=_differ(clean), moved=len(moved), moved_differ=_differ(moved))
    wrong, why = _decide(found)
    return Drafts(
        clean=found.clean,
        clean_differ=found.clean_differ,
        moved=found.moved,
        moved_differ=found.moved_differ,
        loss=_loss(moved),
        wrong_features=wrong,
        why=why,
    )


def _decide(found: Drafts) -> tuple[bool | None, str]:
    """Tell whether drafts differ after a move, and nowhere else."""
    told = (
        f"{found.moved_differ} of {found.moved} steps after a moved path draft otherwise than a fresh request with the same text, "
        f"{found.clean_differ} of {found.clean} others"
    )
    if found.moved < LEAST_PAIRS or found.clean < LEAST_PAIRS:
        return None, f"{told}: too few"
    if found.clean_differ > CLEAN_DIFFER * found.clean:
        return None, f"{told}: drafts are not repeatable here"
    if found.moved_differ >= MOVED_DIFFER * found.moved:
        return True, told
    if found.moved_differ > CLEAN_DIFFER * found.moved:
        return None, f"{told}: more than near-ties explain, less than wrong features do"
    return False, told


def _differ(pairs: Iterable[DraftPair]) -> int:
    return sum(not pair.same for pair in pairs)


def _loss(pairs: Sequence[DraftPair]) -> float | None:
    if not pairs:
        return None
    return sum(pair.fresh_accepted - pair.accepted for pair in pairs) / len(pairs)


def _by_acceptance(pairs: Sequence[DraftPair]) -> Drafts:
    """Compare accepted drafts alone, where the engine tells no drafts: a loss is likely, its absence proves nothing."""
    later = [pair for pair in pairs if pair.history is not History.FRESH]
    loss = _loss(later)
    if loss is None or len(later) < LEAST_PAIRS:
        return Drafts(loss=loss, why="no drafts are told, and too few steps were compared by what they accepted")
    differences = [pair.fresh_accepted - pair.accepted for pair in later]
    variance = sum((each - loss) ** 2 for each in differences) / (len(later) - 1)
    error = (variance / len(later)) ** 0.5
    why = f"{len(later)} steps accept {loss:.2f} drafts less each than fresh requests with the same text"
    if loss >= LEAST_LOSS and loss >= SPREADS * error:
        return Drafts(moved=len(later), loss=loss, wrong_features=True, why=why)
    return Drafts(moved=len(later), loss=loss, why=f"{why}; a verify trace would show the drafts themselves")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Drafts that answers count as right and that did not become tokens, beyond what their last steps may have cut off."""

    requests: int = 0
    verify_calls: int = 0
    correct: int = 0
    tokens: int = 0
    lost: int = 0


def thrown_away(answers: Iterable[Answered], max_drafts: int) -> Lost | None:
    """Add up requests that tell all counts: each verify call commits its right drafts and a bonus, the last one maybe less.

    None without such a request. Tokens leave out the prefill's.
    """
    requests = calls = correct = tokens = lost = 0
    for one in answers:
        if one.verify_calls is None or one.correct_drafts is None or not one.tokens:
            continue
        requests += 1
        calls += one.verify_calls
        correct += one.correct_drafts
        tokens += one.tokens - 1
        lost += max(0, one.verify_calls + one.correct_drafts - (one.tokens - 1) - max_drafts)
    if not requests:
        return None
    return Lost(requests=requests, verify_calls=calls, correct=correct, tokens=tokens, lost=lost)


def ended_early(answers: Iterable[Answered]) -> tuple[Answered, ...]:
    """Return requests that say that they reached their limit before they did; they were told to ignore end tokens."""
    return tuple(one for one in answers if one.finish == "length" and one.tokens < one.asked)
