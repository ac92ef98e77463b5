"""A calibration file: what a host, or a model of one, serves by mode and concurrency; a mapping in, a value out.

The format holds that of shared model files: `modes` maps a mode ("dflash", "ddtree:tree_budget=16") to concurrency → output tokens
a second of the whole server. All else is optional (docs/calibrate.md has every key): `max_running` (requests that run at once),
`prefill_s_per_input_token` (seconds), `spread` (how far the truth may be off, a ratio), `errors` (mode → concurrency → standard
error, tokens a second), `segments` (likewise, how often measured), `accept_lengths`, `measured` (mode → the points that were
measured, all where it is absent), `holds_for` (the facts that it holds for), `stretches`, `crossovers`, `trees`, `drafts` (what
`specctl calibrate` concluded), and texts for people: `about`, `host`, `gpu`, `target`, `draft`, `engine`, `when`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.control import calibration_found
from specctl.control.calibration_facts import Facts
from specctl.control.calibration_found import Said
from specctl.control.calibration_reader import MOST_MODES, MOST_RUNNING, Reader
from specctl.control.mode import Mode
from specctl.control.rates_table import Beyond, Point, Table

TEXTS = frozenset({"about", "host", "gpu", "target", "draft", "engine", "when"})
FIGURES = frozenset({"modes", "max_running", "prefill_s_per_input_token", "spread", "measured", "errors"})
# Of segments and accept lengths people and plots want to know; nothing is decided by them.
BESIDE = frozenset({"segments", "accept_lengths"})
KEYS = FIGURES | BESIDE | calibration_found.KEYS | TEXTS
SPREAD = 0.05
"""A bench run's own noise from one run to the next, where a file does not say it; no source, a choice."""


class CalibrationError(ValueError):
    """The file cannot be used; carries every problem, each with its key."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A file that was found good; `table` answers for rates. `measured` are the points that are no assumption.

    `holds_for`: what it was measured on, nothing known where the file does not say. `said`: what was concluded from it.
    """

    table: Table
    max_running: int | None = None
    prefill_s_per_input_token: float | None = None
    measured: Mapping[Mode, frozenset[float]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    holds_for: Facts = field(default_factory=Facts)
    said: Said = field(default_factory=Said)


def parse(plain: object, *, beyond: Beyond = Beyond.UNKNOWN, spread: float = SPREAD) -> Calibration:
    """Read a file's mapping; raises CalibrationError with all that is wrong.

    `beyond`: what holds above a mode's last point. `spread`: where the file says none.
    """
    if not isinstance(plain, Mapping):
        raise CalibrationError(["a calibration is a mapping with modes"])
    reader = Reader()
    reader.problems += [f"{key}: there is no such key" for key in plain if key not in KEYS]
    most = plain.get("max_running")
    running = None if most is None else reader.whole(most, "max_running", high=MOST_RUNNING)
    prefill = plain.get("prefill_s_per_input_token")
    prefill_s = None if prefill is None else reader.number(prefill, "prefill_s_per_input_token", low=0.0, high=3600.0)
    given = plain.get("spread")
    ratio = spread if given is None else reader.number(given, "spread", low=0.0, high=1.0)
    points = _modes(reader, plain.get("modes"))
    measured = _measured(reader, plain.get("measured"), points)
    errors = _errors(reader, plain.get("errors"), points)
    holds_for, said = calibration_found.facts(reader, plain.get("holds_for")), calibration_found.said(reader, plain)
    texts = {key: str(plain[key]) for key in sorted(TEXTS) if plain.get(key) is not None}
    if reader.problems:
        raise CalibrationError(reader.problems)
    doubt = spread if ratio is None else ratio
    return Calibration(
        table=Table(points=points, max_running=running, beyond=beyond, spread=doubt, errors=errors),
        max_running=running,
        prefill_s_per_input_token=prefill_s,
        measured=measured,
        texts=texts,
        holds_for=holds_for,
        said=said,
    )


def _modes(reader: Reader, value: object) -> dict[Mode, tuple[Point, ...]]:
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


def _measured(reader: Reader, value: object, points: Mapping[Mode, Sequence[Point]]) -> dict[Mode, frozenset[float]]:
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


def _errors(reader: Reader, value: object, points: Mapping[Mode, Sequence[Point]]) -> dict[Mode, tuple[Point, ...]]:
    """Return the standard errors as ratios of their points' rates; none where the file says none."""
    found: dict[Mode, tuple[Point, ...]] = {}
    for name, rows in reader.mapping({} if value is None else value, "errors").items():
        mode = reader.mode(name, f"errors.{name}")
        rates = dict(points.get(mode, ())) if mode is not None else {}
        ratios = []
        for text, error in reader.mapping(rows, f"errors.{name}").items():
            key = f"errors.{name}.{text}"
            level, tokens_s = reader.level(text, key), reader.number(error, key, low=0.0, high=1e9)
            if level is not None and tokens_s is not None and level in rates:
                ratios.append((level, tokens_s / rates[level]))
            elif level is not None and tokens_s is not None:
                reader.problems.append(f"{key}: there is no point at {level:g}")
        if mode is not None:
            found[mode] = tuple(sorted(ratios))
    return found
