"""Bring what a file or a paper says of a server to the level at which this host is seen to run.

A calibration was made with other prompts, contexts or clocks than today's. What the running mode serves below or above its figure
there, the others would miss or exceed too, as far as anybody knows: to hold a measurement of the one against bare figures of the
others would take the difference of the two days for a gain, and try modes to learn that it is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.control.profile_rates import Observation
from specctl.control.rates import Estimate, Rates

DOUBT = 0.5
"""So much of the distance (as a logarithm) is added as doubt: it need not be the same for every mode; no source, a choice."""
MOST_DOUBT = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Levelled:
    """Rates times one factor for all modes, with the doubt that it brings."""

    rates: Rates
    factor: float

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes that something is known of."""
        return self.rates.modes

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the estimate at the host's level."""
        found = self.rates.tokens_s(mode, concurrency)
        if found is None:
            return None
        doubt = min(DOUBT * abs(math.log(self.factor)), MOST_DOUBT)
        return Estimate(
            value=found.value * self.factor,
            low=found.low * self.factor * (1 - doubt),
            high=found.high * self.factor * (1 + doubt),
            source=found.source,
        )


def levelled(rates: Rates | None, seen: Sequence[Observation], running: Mode | None) -> Rates | None:
    """Return the rates at the level of what was seen of the running mode; as they are where nothing can be compared."""
    factor = None if rates is None else level(rates, seen, running)
    return rates if rates is None or factor is None else Levelled(rates=rates, factor=factor)


def level(rates: Rates, seen: Sequence[Observation], running: Mode | None) -> float | None:
    """Return what was measured of the running mode over what the rates say of it: a geometric mean, by seconds of decoding."""
    weight, total = 0.0, 0.0
    for one in seen:
        told = rates.tokens_s(one.mode, one.concurrency) if one.mode == running and one.tokens_s > 0 else None
        if told is not None and told.value > 0:
            weight += one.weight
            total += one.weight * math.log(one.tokens_s / told.value)
    return math.exp(total / weight) if weight > 0 else None
