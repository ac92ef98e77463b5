"""Wait on conditions with a bound: the only place of the test fleet that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.03
# A look may be a whole command. After one that took so long the waiting rests for half as long, and for a quarter of a second at
# most: what is waited for needs the processors too, and some of it lasts for a second only.
DEAR_S = 0.1
RESTS = 0.5
MOST_S = 0.25


class FleetError(RuntimeError):
    """A test host or the fleet itself did not do what was asked; the message says which and what."""


def until(condition: Callable[[], bool], *, within_s: float, what: str) -> None:
    """Return once `condition` holds; raise FleetError naming `what` when it does not within the bound."""
    began = time.monotonic()
    deadline = began + within_s
    while not condition():
        ended = time.monotonic()
        if ended > deadline:
            raise FleetError(f"{what}: not within {within_s:g} s")
        took_s = ended - began
        time.sleep(min(RESTS * took_s, MOST_S) if took_s > DEAR_S else POLL_S)
        began = time.monotonic()
