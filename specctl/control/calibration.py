"""A calibration file: what a host, or a model of one, serves by mode and concurrency; a mapping in, a value out.

The format holds that of shared model files: `modes` maps a mode ("dflash", "ddtree:tree_budget=16") to concurrency → output tokens
a second of the whole server. Optional: `max_running` (requests that run at once), `prefill_s_per_input_token` (seconds), `spread`
(how far the truth may be off, a ratio), `measured` (mode → the points that were measured, all where it is absent), `about`, `host`,
`gpu`, `target`, `draft`, `engine`, `when` (texts, for people).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.rates_table import Beyond, Point, Table

TEXTS = frozenset({"about", "host", "gpu", "target", "draft", "engine", "when"})
KEYS = frozenset({"modes", "max_running", "prefill_s_per_input_token", "spread", "measured"}) | TEXTS
MOST_MODES, MOST_POINTS, MOST_RUNNING = 64, 1024, 65_536
SPREAD = 0.05
"""A bench run's own noise from one run to the next, where a file does not say it; no source, a choice."""


class CalibrationError(ValueError):
    """The file cannot be used; carries every problem, each with its key."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A file that was found good; `table` answers for rates. `measured` are the points that are no assumption."""

    table: Table
    max_running: int | None = None
    prefill_s_per_input_token: float | None = None
    measured: Mapping[Mode, frozenset[float]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Reader:
    """Reads values and keeps what is wrong with them."""

    problems: list[str] = field(default_factory=list)

    def number(self, value: object, key: str, *, low: float, high: float) -> float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.problems.append(f"{key}: a number is wanted, not {value!r}")
            return None
        if not low <= value <= high:
            self.problems.append(f"{key}: {value:g} is outside {low:g} to {high:g}")
            return None
        return float(value)

    def mode(self, text: object, key: str) -> Mode | None:
        try:
            return modes.parse(str(text))
        except ValueError as error:
            self.problems.append(f"{key}: {error}")
            return None

    def points(self, value: object, key: str) -> tuple[Point, ...]:
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
        try:
            level = float(str(text))
        except ValueError:
            level = math.nan
        if 0 < level <= MOST_RUNNING:
            return level
        self.problems.append(f"{key}: {text!r} is no concurrency from above 0 to {MOST_RUNNING}")
        return None


def parse(plain: object, *, beyond: Beyond = Beyond.UNKNOWN, spread: float = SPREAD) -> Calibration:
    """Read a file's mapping; raises CalibrationError with all that is wrong.

    `beyond`: what holds above a mode's last point. `spread`: where the file says none.
    """
    if not isinstance(plain, Mapping):
        raise CalibrationError(["a calibration is a mapping with modes"])
    reader = _Reader()
    reader.problems += [f"{key}: there is no such key" for key in plain if key not in KEYS]
    running = _running(reader, plain.get("max_running"))
    prefill = plain.get("prefill_s_per_input_token")
    prefill_s = None if prefill is None else reader.number(prefill, "prefill_s_per_input_token", low=0.0, high=3600.0)
    given = plain.get("spread")
    ratio = spread if given is None else reader.number(given, "spread", low=0.0, high=1.0)
    points = _modes(reader, plain.get("modes"))
    measured = _measured(reader, plain.get("measured"), points)
    texts = {key: str(plain[key]) for key in sorted(TEXTS) if plain.get(key) is not None}
    if reader.problems:
        raise CalibrationError(reader.problems)
    table = Table(points=points, max_running=running, beyond=beyond, spread=spread if ratio is None else ratio)
    return Calibration(
        table=table, max_running=running, prefill_s_per_input_token=prefill_s, measured=measured, texts=texts
    )


def _running(reader: _Reader, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_RUNNING:
        reader.problems.append(f"max_running: a whole number from 1 to {MOST_RUNNING} is wanted, not {value!r}")
        return None
    return value


def _modes(reader: _Reader, value: object) -> dict[Mode, tuple[Point, ...]]:
    if not isinstance(value, Mapping) or not 1 <= len(value) <= MOST_MODES:
        reader.problems.append(f"modes: a mapping of 1 to {MOST_MODES} modes is wanted")
        return {}
    found: dict[Mode, tuple[Point, ...]] = {}
    for name, table in value.items():
        mode = reader.mode(name, f"modes.{name}")
        points = reader.points(table, f"modes.{name}")
        if mode in found:
            reader.problems.append(f"modes.{name}: the mode is given twice")
        elif mode is not None:
            found[mode] = points
    return found


def _measured(reader: _Reader, value: object, points: Mapping[Mode, Sequence[Point]]) -> dict[Mode, frozenset[float]]:
    """Return the measured points; where the file says nothing, all of them."""
    if value is None:
        return {mode: frozenset(level for level, _ in each) for mode, each in points.items()}
    if not isinstance(value, Mapping):
        reader.problems.append("measured: a mapping of modes to lists of concurrencies is wanted")
        return {}
    found: dict[Mode, frozenset[float]] = {}
    for name, levels in value.items():
        mode = reader.mode(name, f"measured.{name}")
        if not isinstance(levels, Sequence) or isinstance(levels, str):
            reader.problems.append(f"measured.{name}: a list of concurrencies is wanted")
            continue
        told = {reader.level(each, f"measured.{name}") for each in levels}
        known = {level for level, _ in points.get(mode, ())} if mode is not None else set()
        strangers = sorted(level for level in told if level is not None and level not in known)
        reader.problems += [f"measured.{name}: there is no point at {level:g}" for level in strangers]
        if mode is not None:
            found[mode] = frozenset(level for level in told if level is not None)
    return found
