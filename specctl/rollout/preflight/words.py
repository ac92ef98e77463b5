"""How checks say sizes and lists; pure."""

from __future__ import annotations

from collections.abc import Iterable

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float) -> str:
    """Return bytes as people read them: 81.6 GiB."""
    value, unit = float(count), 0
    while abs(value) >= 1024 and unit + 1 < len(UNITS):
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {UNITS[unit]}" if unit == 0 else f"{value:.1f} {UNITS[unit]}"


def numbered(indices: Iterable[int]) -> str:
    """Return GPU indices in a few words: GPU 3, or GPUs 0, 1 and 2."""
    found = [str(index) for index in indices]
    if len(found) < 2:
        return f"GPU {found[0]}" if found else "no GPU"
    return f"GPUs {', '.join(found[:-1])} and {found[-1]}"


def seconds(value: float) -> str:
    """Return a duration in its largest unit: 61 s, 12 min, 3.0 h, 5.0 d."""
    for limit, unit_s, unit, digits in ((120, 1, "s", 0), (7200, 60, "min", 0), (172_800, 3600, "h", 1)):
        if value < limit:
            return f"{value / unit_s:.{digits}f} {unit}"
    return f"{value / 86_400:.1f} d"
