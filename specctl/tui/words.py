"""Figures and states of a sight in words that fit a cell; pure. Unknown is —, and so is what is no number; never zero."""

from __future__ import annotations

import math
from collections.abc import Iterable

from specctl.control import sight_words
from specctl.control.mode import Mode
from specctl.control.sample.gpu import Throttle
from specctl.control.sight import GpuSight, Sight, State, Told, knobs_of
from specctl.rollout.story import clock
from specctl.ui.status import STATE_STYLES
from specctl.ui.text import UNKNOWN, plain

GB = 1e9
NOT_YET = "not seen yet"


def one_line(text: object) -> str:
    """Return a text as one line that steers no terminal."""
    found = plain(str(text))
    return found if found.isprintable() else found.replace("\n", " ").replace("\t", " ")


def known(value: float | None) -> float | None:
    """Return a figure that is one; None for what is unknown, endless or no number."""
    return value if value is not None and math.isfinite(value) else None


def figure(value: float | None, digits: int = 1) -> str:
    """Return a figure in at most seven cells: 2.31, 318.2, 12040, 1.2M."""
    value = known(value)
    if value is None:
        return UNKNOWN
    for limit, size, unit in ((1e5, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M"), (1e12, 1e9, "G")):
        if abs(value) < limit:
            small = abs(value) < 1000 or unit
            return f"{value / size:.{digits if small else 0}f}{unit}"
    return f"{value:.0e}"


def whole(value: float | None) -> str:
    """Return a count."""
    return figure(value, 0)


def percent(ratio: float | None) -> str:
    """Return a share: 12 %."""
    ratio = known(ratio)
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"


def watts(value: float | None) -> str:
    """Return a power: 212 W, 1.7 kW, 23 kW."""
    value = known(value)
    if value is None:
        return UNKNOWN
    if abs(value) < 1000:
        return f"{value:.0f} W"
    return f"{value / 1000:.1f} kW" if abs(value) < 99_950 else f"{figure(value / 1000, 0)} kW"


def gigabytes(value: float | None) -> str:
    """Return an amount of memory in GB, without the unit."""
    value = known(value)
    return UNKNOWN if value is None else figure(value / GB, 0 if abs(value) >= 10 * GB else 1)


def celsius(value: float | None) -> str:
    """Return a temperature: 71 °C."""
    value = known(value)
    return UNKNOWN if value is None else f"{figure(value, 0)} °C"


def ago(seconds: float | None) -> str:
    """Return an age: 0.4 s, 12 s, 3 min."""
    seconds = known(seconds)
    return (None if seconds is None else sight_words.age(max(seconds, 0.0))) or UNKNOWN


def mode_text(mode: Mode | None) -> str:
    """Return an algo with its knobs in the algo's own order: ddtree 7/1."""
    return UNKNOWN if mode is None else one_line(sight_words.mode_text(mode))


def mode_long(mode: Mode | None) -> str:
    """Return an algo with its knobs by name."""
    if mode is None:
        return UNKNOWN
    return one_line("  ".join([mode.algo, *(f"{name} {value}" for name, value in knobs_of(mode).items())]))


def state_text(sight: Sight) -> str:
    """Return the state with what is known of the proof or of the load."""
    state = one_line(sight.state)
    if unseen(sight):
        return NOT_YET
    if sight.loading is not None:
        at = known(sight.loading.elapsed_s)
        return f"{state} {clock(at)}" if at is not None else state
    if sight.state == State.READY and sight.proven is not None:
        return f"{state}, {'proven' if sight.proven else 'claimed'}"
    return state


def unseen(sight: Sight) -> bool:
    """Claim that its host has neither answered nor failed to yet."""
    return sight.state == State.UNKNOWN and sight.age_s is None and sight.reason is None


def state_style(sight: Sight) -> str:
    """Return the style of the state; a state that nobody expected is bad."""
    if unseen(sight):
        return "quiet"
    if sight.state == State.READY and sight.proven is False:
        return "warn"
    return STATE_STYLES.get(sight.state, "bad")


def decision_text(sight: Sight) -> str:
    """Return what was decided about a server last, as `specctl status` says it."""
    return one_line(sight_words.last_decision(sight) or UNKNOWN)


def fresh(told: Told[float] | Told[int] | None) -> float | None:
    """Return a figure that may stand for now; None for one that is unknown or stale."""
    return None if told is None or told.stale else known(told.value)


def shown(told: Told[float] | Told[int] | None) -> float | None:
    """Return a figure whatever its age."""
    return None if told is None else known(told.value)


def power_w(gpus: Iterable[GpuSight] | None) -> float | None:
    """Return the watts of all GPUs that tell them; None where none does."""
    return _sum(gpu.power_w for gpu in gpus or ())


def busy_ratio(gpus: Iterable[GpuSight] | None) -> float | None:
    """Return the mean of the GPUs' busy shares."""
    found = [value for gpu in gpus or () if (value := known(gpu.busy_ratio)) is not None]
    return sum(found) / len(found) if found else None


def memory_ratio(gpu: GpuSight) -> float | None:
    """Return the share of a GPU's memory that is in use."""
    used, total = known(gpu.memory_used_bytes), known(gpu.memory_total_bytes)
    return None if used is None or not total or total < 0 else used / total


def hottest_c(gpus: Iterable[GpuSight] | None) -> float | None:
    """Return the temperature of the hottest GPU."""
    return max((value for gpu in gpus or () if (value := known(gpu.temperature_c)) is not None), default=None)


def reasons(throttles: Iterable[Throttle]) -> str:
    """Return why clocks are down, as people write it."""
    return ", ".join(reason.value.replace("_", " ") for reason in throttles)


def _sum(values: Iterable[float | None]) -> float | None:
    found = [value for each in values if (value := known(each)) is not None]
    return sum(found) if found else None
