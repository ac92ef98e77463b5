"""Window and profile over a hundred thousand ticks: nothing grows once a week has been seen."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from specctl.control.mode import mode
from specctl.control.profile import ConcurrencyProfile, observe
from specctl.control.sample.engine import DecodeSums, EngineLoad, EngineSample, Look
from specctl.control.sample.engine_track import EngineTrack, advance
from specctl.control.window import Window
from specctl.control.window import observe as seen

TICKS = 100_000
TICK_S = 20.0  # a week is over after 30,240 of them
SETTLED = 45_000
MOST_GROWTH_BYTES = 100_000
MODES = [mode("none"), *(mode("dflash", {"block_size": size}) for size in (4, 8, 16))]


@pytest.mark.soak
def test_a_hundred_thousand_ticks_grow_nothing() -> None:
    """Memory of track, window and profile after 100,000 ticks is that after 45,000, when every hour of the week had been seen."""
    chance = random.Random(4)
    track, window, profile = EngineTrack(), Window(), ConcurrencyProfile()
    sums = DecodeSums(steps=0.0, requests=0.0, busy_s=0.0, request_busy_s=0.0, tokens=0.0)
    tracemalloc.start()
    before = 0
    for tick in range(TICKS):
        running = chance.choice((0, 1, 2, 5, 9, 30, 70))
        batch = max(running, 1)
        sums += DecodeSums(
            steps=20.0, requests=20.0 * batch, busy_s=0.4, request_busy_s=0.4 * batch, tokens=40.0 * batch
        )
        at_s = tick * TICK_S
        load = EngineLoad(running=running, waiting=0, used_tokens=running * 900, age_s=0.1, decoded=sums, ranks=1)
        look = None if tick % 97 == 0 else Look(at_s=at_s, load=load, ready=True)
        sample: EngineSample
        track, sample = advance(track, at_s=at_s, look=look, mode=MODES[tick // 5000 % len(MODES)])
        window, profile = seen(window, sample), observe(profile, sample, 1.796e9 + at_s)
        if tick == SETTLED:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < MOST_GROWTH_BYTES
    assert profile.observed_s + profile.unknown_s == pytest.approx((TICKS - 1) * TICK_S)
