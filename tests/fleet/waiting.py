"""Wait on conditions with a bound: the only place of the test fleet that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.03


class FleetError(RuntimeError):
    """A test host or the fleet itself did not do what was asked; the message says which and what."""


def until(condition: Callable[[], bool], *, within_s: float, what: str) -> None:
    """Return once `condition` holds; raise FleetError naming `what` when it does not within the bound."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise FleetError(f"{what}: not within {within_s:g} s")
        time.sleep(POLL_S)
