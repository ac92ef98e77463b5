"""What a switch costs in a replay: how long the server is away, and whether it lets its requests end first."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Cost classes of the design (§6): the engine takes a knob over HTTP, and stock SGLang loads again.
LIVE_S = 0.1
RESTART_S = 480.0
LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Seconds in which nothing is served; `drains`: no request is taken before, and those that run end first."""

    seconds: float
    drains: bool

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.drains else f"{self.seconds:g} s, live"


LIVE = Outage(seconds=LIVE_S, drains=False)
RESTART = Outage(seconds=RESTART_S, drains=True)


def parse(text: str) -> Outage:
    """Read `live`, `restart` or seconds, which drain as a restart does; raises ValueError for anything else."""
    known = {"live": LIVE, "restart": RESTART}
    if text in known:
        return known[text]
    try:
        away = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither live, restart nor seconds") from None
    if not (math.isfinite(away) and 0 <= away <= LONGEST_S):
        raise ValueError(f"a switch takes 0 to {LONGEST_S:.0f} s, not {text}")
    return Outage(seconds=away, drains=True)
