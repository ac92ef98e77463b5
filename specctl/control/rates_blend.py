"""The agent's throughput model: what this host measured, else its calibration file, else published figures.

What was measured grows less certain with its age, and for a mode whose algo does not run also with the drift of the task mix: its
accept length would have moved too, and nobody saw it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.control.profile_rates import Observation
from specctl.control.rates import Estimate, Rates, Source
from specctl.control.rates_level import levelled

LEAST_WEIGHT_S = 30.0
"""Less decoding than this measures nothing: half a minute holds a few hundred steps."""
REACH = 1.25
"""A measurement speaks for concurrencies up to a quarter above and below; between two of a mode the rate is linear."""
DAY_S = 86_400.0
AGE_SPREAD = 0.02
"""Relative uncertainty after a day, which grows with the root of the age: half a year and it is a quarter; no source, a choice."""
LEAST_SPREAD = 0.02
MOST_SPREAD = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """Rates of one host; `running` is the mode that decodes now. Each source is asked only where a better one says nothing."""

    observations: Sequence[Observation] = ()
    calibration: Rates | None = None
    prior: Rates | None = None
    running: Mode | None = None

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes that were measured or calibrated."""
        known = [one.mode for one in self.observations]
        if self.calibration is not None:
            known.extend(self.calibration.modes)
        return tuple(dict.fromkeys(known))

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the estimate of the best source that knows; None where none does."""
        found = self._measured(mode, concurrency)
        for source in (self.calibration, self.prior):
            if found is None and source is not None:
                found = source.tokens_s(mode, concurrency)
        return found

    def _measured(self, mode: Mode, concurrency: float) -> Estimate | None:
        own = sorted(
            (one for one in self.observations if one.mode == mode and one.weight >= LEAST_WEIGHT_S),
            key=lambda one: one.concurrency,
        )
        below = [one for one in own if one.concurrency <= concurrency]
        above = [one for one in own if one.concurrency > concurrency]
        if below and above and below[-1].concurrency * REACH**4 >= above[0].concurrency:
            return self._joined(below[-1], above[0], concurrency)
        near = [one for one in own if 1 / REACH <= concurrency / one.concurrency <= REACH]
        if not near:
            return None
        one = min(near, key=lambda each: abs(math.log(concurrency / each.concurrency)))
        return _estimate(one.tokens_s * concurrency / one.concurrency, self._spread(one) + _stretch(one, concurrency))

    def _joined(self, low: Observation, high: Observation, concurrency: float) -> Estimate:
        share = (concurrency - low.concurrency) / (high.concurrency - low.concurrency)
        rate = low.tokens_s + share * (high.tokens_s - low.tokens_s)
        return _estimate(rate, max(self._spread(low), self._spread(high)))

    def _spread(self, one: Observation) -> float:
        """Return the relative uncertainty: of the mean, of its age, and of the drift where the algo does not run."""
        noise = 0.0 if one.variance is None else math.sqrt(one.variance / one.weight) / one.tokens_s
        aged = AGE_SPREAD * math.sqrt(one.age_s / DAY_S)
        away = self.running is None or self.running.algo != one.mode.algo
        return LEAST_SPREAD + 2 * noise + aged + (drift(self.observations, self.running, one.age_s) if away else 0.0)


def blend(
    seen: Sequence[Observation], calibration: Rates | None, published: Rates | None, running: Mode | None
) -> Blend:
    """Make the model of a host: what a file or a paper says is brought to the level at which the running mode was measured."""
    known = [one for one in seen if one.weight >= LEAST_WEIGHT_S]
    return Blend(
        observations=seen,
        calibration=levelled(calibration, known, running),
        prior=levelled(published, known, running),
        running=running,
    )


def drift(observations: Sequence[Observation], running: Mode | None, since_s: float) -> float:
    """Return how far the running mode's accept length moved, as a ratio, over `since_s` seconds; 0 where nobody can tell.

    Old and new cells of one mode are told apart by their age: those that were last seen before and those since.
    """
    own = [one for one in observations if one.mode == running and one.accept_length and one.weight >= LEAST_WEIGHT_S]
    old = [one for one in own if one.age_s >= since_s]
    new = [one for one in own if one.age_s < since_s]
    before, after = _accept_length(old), _accept_length(new)
    return 0.0 if before is None or after is None else abs(math.log(after / before))


def _accept_length(cells: Sequence[Observation]) -> float | None:
    weight = sum(one.weight for one in cells)
    return sum((one.accept_length or 0.0) * one.weight for one in cells) / weight if weight > 0 else None


def _stretch(one: Observation, concurrency: float) -> float:
    """Return the doubt of going beyond a measured batch: rates grow at most in proportion and at least not at all."""
    return abs(concurrency / one.concurrency - 1)


def _estimate(rate: float, spread: float) -> Estimate:
    spread = min(spread, MOST_SPREAD)
    return Estimate(value=rate, low=rate * (1 - spread), high=rate * (1 + spread), source=Source.MEASURED)
