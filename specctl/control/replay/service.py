"""The server of a replay: tokens a second by mode and concurrency, as a model file states them; not what the policy believes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from specctl.control import mode as modes
from specctl.control.mode import Mode

MOST_MODES = 64
MOST_POINTS = 1024
MOST_RUNNING = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Tokens a second of one server: for each mode, rates at concurrencies that rise from one.

    Between two points the rate is linear, from no request to the first point too; above the last it stays. At most
    `max_running` requests run, the others wait. Reading a prompt takes `prefill_s` seconds a token and stops decoding.
    """

    rates: Mapping[Mode, Sequence[tuple[float, float]]]
    max_running: int
    prefill_s: float = 0.0

    def rate(self, mode: Mode, concurrency: float) -> float:
        """Return the tokens a second of all requests together."""
        load = min(concurrency, self.max_running)
        before_c, before = 0.0, 0.0
        for at, rate in self.rates[mode]:
            if load <= at:
                return before + (rate - before) * (load - before_c) / (at - before_c)
            before_c, before = at, rate
        return before

    def by_running(self, mode: Mode) -> tuple[float, ...]:
        """Return the rate at each number of running requests, from none to `max_running`."""
        return tuple(self.rate(mode, running) for running in range(self.max_running + 1))

    def at(self, levels: Iterable[float]) -> Mapping[Mode, Mapping[float, float]]:
        """Return the rate of each mode at each of some levels of concurrency."""
        wanted = set(levels)
        return {mode: {level: self.rate(mode, level) for level in wanted} for mode in self.rates}

    def capacity(self, mode: Mode) -> float:
        """Return the most tokens a second that a mode reaches at any number of running requests."""
        return max(self.by_running(mode))

    @property
    def best_capacity(self) -> float:
        """The most tokens a second that any mode reaches."""
        return max(self.capacity(mode) for mode in self.rates)


def parse(values: object) -> Service:
    """Read a model file's object; raises ValueError that names the key of the first value that cannot be meant.

    Keys: `modes` (mode to concurrency to tokens a second), `max_running`, `prefill_s_per_input_token` (absent: prompts cost no
    time). Other keys are for people.
    """
    if not isinstance(values, dict):
        raise ValueError("a model is an object with modes and max_running")
    running = values.get("max_running")
    if not isinstance(running, int) or isinstance(running, bool) or not 1 <= running <= MOST_RUNNING:
        raise ValueError(f"max_running: a whole number from 1 to {MOST_RUNNING} is wanted, not {running!r}")
    prefill = _number(values.get("prefill_s_per_input_token", 0.0), "prefill_s_per_input_token")
    tables = values.get("modes")
    if not isinstance(tables, dict) or not 1 <= len(tables) <= MOST_MODES:
        raise ValueError(f"modes: an object of 1 to {MOST_MODES} modes is wanted")
    rates: dict[Mode, Sequence[tuple[float, float]]] = {}
    for name, table in tables.items():
        try:
            mode = modes.parse(str(name))
        except ValueError as error:
            raise ValueError(f"modes.{name}: {error}") from error
        if mode in rates:
            raise ValueError(f"modes.{name}: the mode is given twice")
        rates[mode] = _points(table, f"modes.{name}")
    return Service(rates=rates, max_running=running, prefill_s=prefill)


def _points(table: object, key: str) -> tuple[tuple[float, float], ...]:
    if not isinstance(table, dict) or not 1 <= len(table) <= MOST_POINTS:
        raise ValueError(f"{key}: an object of 1 to {MOST_POINTS} points, concurrency to tokens a second, is wanted")
    points: dict[float, float] = {}
    for text, value in table.items():
        try:
            level = float(text)
        except ValueError:
            raise ValueError(f"{key}: {text!r} is not a concurrency") from None
        if not (math.isfinite(level) and level > 0) or level in points:
            raise ValueError(f"{key}: a concurrency is a number above zero that stands once, not {text!r}")
        points[level] = _number(value, f"{key}.{text}")
        if points[level] == 0:
            raise ValueError(f"{key}.{text}: a mode that serves nothing would never end")
    return tuple(sorted(points.items()))


def _number(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{key}: a number from zero up is wanted, not {value!r}")
    return float(value)
