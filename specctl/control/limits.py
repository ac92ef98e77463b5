"""What holds a decision back: patience, and the bounds that no gain outweighs. Every default is a number with its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields

DAY_S = 86_400.0
QUICK_S = 1.0
"""A change that takes no longer than the time between two samples is quick: following every change of load costs little."""

LONG_S = 60.0
"""A change that takes a minute or more is long: it cannot follow the load as it comes, and the hours of the week tell of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the policy.

    Patience, in prices of the change: what a large gain must have gathered, and what ends all waiting. `least` and `most` are for a
    change of a minute or more: a small lead must outlast the hours of a day that would take it back, while a large one would repay
    it within the hour. `least_short` and `most_short` are for shorter ones, which bursts of load would tempt. `quick` is for what
    takes a second. A gain is large while it is above `large_ratio` of the best mode's worth.
    A mode within `tolerance_ratio` of the best counts as the best, unless a change is quick: no throughput model is that exact.

    `stale_s`: an older look at the engine is none. `dwell_prices`: a mode stays for so many times what the way to it took.
    `away_a_day_s`, `switches_a_day`: what changes may take in 24 hours. `trial_s`: seconds with load in which a gain must show (0:
    nothing is on trial), `trial_ratio` the share of the predicted gain. `freeze_s`: how long a change that did not pay ends all
    others. `look_s`: how often the history is asked. `horizon_s`: how far ahead. `foreseen_prices`: how often it must pay
    both ways.
    """

    least: float = 0.4
    most: float = 4.0
    least_short: float = 1.0
    most_short: float = 4.0
    quick: float = 1.0
    large_ratio: float = 0.2
    tolerance_ratio: float = 0.03
    stale_s: float = 5.0
    dwell_prices: float = 2.0
    away_a_day_s: float = 3600.0
    switches_a_day: int = 10_000
    trial_s: float = 300.0
    trial_ratio: float = 0.25
    freeze_s: float = DAY_S
    look_s: float = 600.0
    horizon_s: float = 12 * 3600.0
    foreseen_prices: float = 3.0

    def enough(self, seconds: float) -> tuple[float, float]:
        """Return the advantages, in prices, that end waiting for a change of that length: of large gains, and of any."""
        if seconds <= QUICK_S:
            return self.quick, self.quick
        return (self.least, self.most) if seconds >= LONG_S else (self.least_short, self.most_short)

    def __post_init__(self) -> None:
        if not (0 < self.least <= self.most and 0 < self.least_short <= self.most_short and self.quick > 0):
            raise ValueError("patience needs 0 < least <= most, also of short changes, and quick > 0")
        for each in fields(self):
            if not getattr(self, each.name) >= 0:
                raise ValueError(f"{each.name} is {getattr(self, each.name)}, below 0")
        for name in ("large_ratio", "tolerance_ratio", "trial_ratio"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is {getattr(self, name)}, and no ratio is above 1")
