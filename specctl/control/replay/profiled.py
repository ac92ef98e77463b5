"""The concurrency profile that the agent keeps, as a series: the last day of a host, to be replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specctl.control.profile import ConcurrencyProfile
from specctl.control.profile_bins import Distribution, middle
from specctl.control.replay.arrivals import uniform
from specctl.control.replay.load import Series

STEP_S = 1.0
# A profile says how long each concurrency was there in ten minutes, not when: it is laid out in blocks of half a minute, in an
# order that is drawn, between a load that is another every second and one that changes once.
BLOCK_STEPS = 30


def series(profile: ConcurrencyProfile) -> Series:
    """Return the recent past of a profile, slice by slice; time that was not watched is left out.

    Concurrencies are the middles of the profile's bins. Raises ValueError where nothing was watched.
    """
    levels: list[float] = []
    for part in profile.slices:
        levels.extend(_drawn(part.load, seed=int(part.begin_s)))
    if not levels:
        raise ValueError("the profile has watched nothing yet")
    return Series(step_s=STEP_S, levels=levels)


def _drawn(load: Distribution, *, seed: int) -> Iterator[float]:
    """Yield the levels of a slice, block by block in an order that the seed draws."""
    rising: list[float] = []
    for place, seconds in enumerate(load.seconds):
        rising.extend([middle(place)] * round(seconds / STEP_S))
    blocks: list[Sequence[float]] = [rising[at : at + BLOCK_STEPS] for at in range(0, len(rising), BLOCK_STEPS)]
    chance = uniform(seed)
    for _, block in sorted(((next(chance), block) for block in blocks), key=lambda pair: pair[0]):
        yield from block
