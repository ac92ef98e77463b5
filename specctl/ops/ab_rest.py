"""Wait until a host's GPUs are at rest as they were before the first segment: as warm, as fast, taking as much power; bounded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from specctl.measure.ab_types import Around
from specctl.measure.load import GpuReading
from specctl.ops.load import Watch

# The readings that a state is taken from, and how long they may take to come at all.
REST_S = 5.0
NO_GPU_S = 8.0
LIMIT_S = 300.0
TEMPERATURE_C = 3.0
POWER_PART = 0.15
CLOCK_PART = 0.10

State = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rested:
    """The state at the end of the wait. `settled` None: the GPUs tell nothing; false: they were not so in time."""

    state: State
    waited_s: float
    settled: bool | None


def rest(watch: Watch, first: Around | None, pause: Callable[[float], bool], show: Callable[[str], None]) -> Rested:
    """Wait for the state of the first segment; without one, for readings alone. `pause` waits, and claims that we must end."""
    began_s = time.monotonic()
    while True:
        now = time.monotonic()
        state = state_of(watch.since(now - REST_S))
        waited_s = now - began_s
        if state["temperature_c"] is None and waited_s > NO_GPU_S:
            return Rested(state=state, waited_s=waited_s, settled=None)
        if state["temperature_c"] is not None and waited_s >= REST_S:
            why = None if first is None else unlike(first, state)
            if why is None:
                return Rested(state=state, waited_s=waited_s, settled=True)
            if waited_s > LIMIT_S:
                return Rested(state=state, waited_s=waited_s, settled=False)
            show(f"waits for the GPUs: {why}")
        if pause(1.0):
            return Rested(state=state, waited_s=waited_s, settled=False)


def state_of(readings: Sequence[GpuReading]) -> State:
    """Return the hottest temperature, the mean clock and the power of all GPUs together; None of what is not told."""
    heats = [each.temperature_c for each in readings if each.temperature_c is not None]
    clocks = [each.sm_clock_hz for each in readings if each.sm_clock_hz is not None]
    powers: dict[int, list[float]] = {}
    for each in readings:
        if each.power_w is not None:
            powers.setdefault(each.index, []).append(each.power_w)
    return {
        "temperature_c": max(heats, default=None),
        "clock_hz": fmean(clocks) if clocks else None,
        "power_w": sum(fmean(values) for values in powers.values()) if powers else None,
    }


def unlike(first: Around, state: State) -> str | None:
    """Say in what a state differs from that of the first segment; None where it is as it was."""
    rows = (
        ("temperature_c", first.temperature_c, TEMPERATURE_C, 1.0, "°C"),
        ("power_w", first.power_w, POWER_PART * (first.power_w or 0.0), 1.0, "W"),
        ("clock_hz", first.clock_hz, CLOCK_PART * (first.clock_hz or 0.0), 1e-6, "MHz"),
    )
    for name, was, band, scale, unit in rows:
        value = state.get(name)
        if was is not None and value is not None and abs(value - was) > band:
            return f"{value * scale:.0f} {unit}, at first {was * scale:.0f}"
    return None
