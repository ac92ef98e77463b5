"""Reads the values of a calibration file one by one, and gathers every problem with its key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.rates_table import Point

MOST_MODES, MOST_POINTS, MOST_RUNNING = 64, 1024, 65_536


@dataclass(slots=True)
class Reader:
    """Reads values and keeps what is wrong with them."""

    problems: list[str] = field(default_factory=list)

    def number(self, value: object, key: str, *, low: float, high: float) -> float | None:
        """Read a number within bounds."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.problems.append(f"{key}: a number is wanted, not {value!r}")
            return None
        if not low <= value <= high:
            self.problems.append(f"{key}: {value:g} is outside {low:g} to {high:g}")
            return None
        return float(value)

    def mode(self, text: object, key: str) -> Mode | None:
        """Read a mode as it is spelled."""
        try:
            return modes.parse(str(text))
        except ValueError as error:
            self.problems.append(f"{key}: {error}")
            return None

    def points(self, value: object, key: str) -> tuple[Point, ...]:
        """Read concurrencies with a rate each, rising."""
        if not isinstance(value, Mapping) or not 1 <= len(value) <= MOST_POINTS:
            self.problems.append(f"{key}: 1 to {MOST_POINTS} points are wanted, concurrency to tokens a second")
            return ()
        found: dict[float, float] = {}
        for text, rate in value.items():
            level = self.level(text, f"{key}.{text}")
            tokens_s = self.number(rate, f"{key}.{text}", low=1e-6, high=1e9)
            if level in found:
                self.problems.append(f"{key}.{text}: the concurrency is given twice")
            elif level is not None and tokens_s is not None:
                found[level] = tokens_s
        return tuple(sorted(found.items()))

    def level(self, text: object, key: str) -> float | None:
        """Read a concurrency, which may be a key of JSON."""
        try:
            level = float(str(text))
        except ValueError:
            level = math.nan
        if 0 < level <= MOST_RUNNING:
            return level
        self.problems.append(f"{key}: {text!r} is no concurrency from above 0 to {MOST_RUNNING}")
        return None

    def whole(self, value: object, key: str, *, high: int) -> int | None:
        """Read a whole number from 1 on."""
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= high:
            self.problems.append(f"{key}: a whole number from 1 to {high} is wanted, not {value!r}")
            return None
        return value

    def modes(self, value: object, key: str) -> tuple[Mode, ...]:
        """Read a list of modes."""
        rows = self.rows(value, key)
        found = [self.mode(row, f"{key}.{number}") for number, row in enumerate(rows)]
        return tuple(mode for mode in found if mode is not None)

    def levels(self, value: object, key: str) -> tuple[float, ...]:
        """Read a list of concurrencies."""
        found = [self.level(row, f"{key}.{number}") for number, row in enumerate(self.rows(value, key))]
        return tuple(level for level in found if level is not None)

    def rows(self, value: object, key: str) -> Sequence[object]:
        """Read a list of whatever."""
        if isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) <= MOST_POINTS:
            return value
        self.problems.append(f"{key}: a list of at most {MOST_POINTS} is wanted")
        return ()

    def mapping(self, value: object, key: str) -> Mapping[object, object]:
        """Read a mapping of whatever."""
        if isinstance(value, Mapping) and len(value) <= MOST_POINTS:
            return value
        self.problems.append(f"{key}: a mapping is wanted")
        return {}
