"""Exit codes add up as the design says: one failure's own, 7 for some of many, 8 above all."""

from __future__ import annotations

import pytest

from specctl.errors import ConnectError, LockHeldError, NoHealthyReleaseError, RolledBackError, SpecctlError
from specctl.rollout.outcome import Outcome, exit_code

GOOD = Outcome(host="a", server="s")


def bad(kind: type[SpecctlError]) -> Outcome:
    """Return the outcome of a failure of that kind."""
    return Outcome(host="b", server="s", error=kind("it failed"))


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        ([GOOD, GOOD], 0),
        ([bad(ConnectError)], 3),
        ([bad(LockHeldError)], 5),
        ([bad(RolledBackError)], 6),
        ([bad(NoHealthyReleaseError)], 8),
        ([GOOD, bad(ConnectError)], 7),
        ([GOOD, bad(NoHealthyReleaseError)], 8),
        ([bad(RolledBackError), bad(NoHealthyReleaseError), GOOD], 8),
        ([bad(RolledBackError), bad(ConnectError)], 6),
        ([GOOD, Outcome(host="c", server="s", skipped="the canary failed")], 7),
    ],
)
def test_gravest_outcome_gives_the_exit_code(outcomes: list[Outcome], code: int) -> None:
    """A rolled back or failed deploy never exits 0."""
    assert exit_code(outcomes) == code
