"""Durations, sizes and GPU lists as the inventory spells them: text to numbers, ValueError in words for what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES: Mapping[str, int] = {
    "B": 1,
    **{f"{letter}B": 1000 ** (power + 1) for power, letter in enumerate("kMGTP")},
    **{f"{letter}iB": 1024 ** (power + 1) for power, letter in enumerate("KMGTP")},
}
DURATION_PATTERN = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h|d))( ?[0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h|d))*$"
SIZE_PATTERN = r"^[0-9]{1,9}(\.[0-9]{1,9})? ?([kMGTP]|[KMGTP]i)?B$"
GPU_RANGE_PATTERN = r"^[0-9]{1,4}(-[0-9]{1,4})?(, ?[0-9]{1,4}(-[0-9]{1,4})?)*$"
MOST_GPUS = 1024  # No machine has more; it bounds what a range can expand to.
LONGEST_S = 30 * 86400.0

_DURATION_PART = re.compile(r"([0-9.]+)(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9.]+) ?([A-Za-z]+)")


def seconds(text: str) -> float:
    """Read `90s`, `8m`, `1h30m`."""
    if not re.match(DURATION_PATTERN, text) or text.endswith("\n"):
        raise ValueError("must be a duration with its unit, such as 90s, 8m or 1h30m")
    total = sum(float(number) * SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    if total > LONGEST_S:
        raise ValueError("must be at most 30d")
    return total


def size_bytes(text: str) -> int:
    """Read `590GB` (SI, powers of 1000) or `96GiB` (binary, powers of 1024), exactly."""
    found = _SIZE.fullmatch(text) if re.match(SIZE_PATTERN, text) else None
    if found is None or found[2] not in BYTES:
        raise ValueError("must be a size with its unit, such as 590GB (powers of 1000) or 96GiB (powers of 1024)")
    whole, _, fraction = found[1].partition(".")
    scaled = int(whole + fraction) * BYTES[found[2]]
    size, rest = divmod(scaled, int("1" + "0" * len(fraction)))
    if rest:
        raise ValueError("must be a whole number of bytes")
    return size


def size_text(size: int) -> str:
    """Return the shortest text, with at most two decimals, that `size_bytes` reads back exactly."""
    exact = []
    for unit, factor in BYTES.items():
        hundredths, rest = divmod(size * 100, factor)
        if not rest and hundredths >= 100:
            exact.append(f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".") + unit)
    return min(exact, key=len, default=f"{size}B")


def gpu_indices(value: int | str | Sequence[int]) -> tuple[int, ...]:
    """Read a count (8), a range ("0-7", "0-3,6") or a list ([0, 1]) into indices, in the order given."""
    if isinstance(value, int):
        indices = list(range(value)) if 1 <= value <= MOST_GPUS else []
    elif isinstance(value, str):
        indices = _expand(value) if re.fullmatch(GPU_RANGE_PATTERN, value) else []
    else:
        indices = list(value)
    if not indices or not all(0 <= index < MOST_GPUS for index in indices):
        raise ValueError('must be a count (8), a range ("0-7") or a list ([0, 1]) of GPUs')
    if len(set(indices)) != len(indices):
        raise ValueError("names a GPU twice")
    return tuple(indices)


def _expand(text: str) -> list[int]:
    indices: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        low, high = int(first), int(last or first)
        if low > high:
            raise ValueError(f"has a range that runs backwards: {part.strip()}")
        indices.extend(range(low, min(high, MOST_GPUS) + 1))
    return indices
