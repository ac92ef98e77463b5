"""What the policy remembers between two ticks: a small value that goes through JSON and back, so that a restart forgets nothing.

All times are ages in seconds; `policy.advance` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.policy_types import Now

FORMAT = 1
LONG_AGO_S = 1e9
"""Older than any limit asks for: a mode that ran before anybody looked, where a replay begins."""
MOST_MODES = 64
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Changes of one hour: when the first was by the state's own clock, how many, and the seconds that they took."""

    at_s: float
    count: int
    away_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A change whose gain must show: seconds with load since, tokens measured, and what the model said of both modes meanwhile."""

    old: Mode
    seconds: float = 0.0
    measured_s: float = 0.0
    measured: float = 0.0
    expected_old: float = 0.0
    expected_new: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Why nothing is changed any more, and for how many seconds yet."""

    reason: str
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The policy's memory of one server; worths are in the objective's unit.

    `mode`: the one that runs and that `work` is reckoned for. `clock_s`: seconds that were counted in all. `work`: for each mode,
    what the past would have cost at least, had one ended there (above the least of them). `gains`: for each mode, what it would
    have brought above a large gain, lately. `paces`: for each price in seconds, the best mode's worth per second over such a time,
    and over ten times as much. `watched_s`: seconds that the paces were taken from. `excess`: regret since patience ran out.
    `since_look_s`: see Limits.look_s.
    """

    mode: Mode | None = None
    at: Now | None = None
    clock_s: float = 0.0
    work: Mapping[Mode, float] = field(default_factory=dict)
    gains: Mapping[Mode, float] = field(default_factory=dict)
    paces: Mapping[float, tuple[float, float]] = field(default_factory=dict)
    watched_s: float = 0.0
    excess: float = 0.0
    since_look_s: float = 0.0
    dwell_s: float = 0.0
    spent: tuple[Spent, ...] = ()
    trial: Trial | None = None
    frozen: Freeze | None = None

    @classmethod
    def fresh(cls, mode: Mode | None = None, *, dwell_s: float = 0.0) -> State:
        """Return the state of a server that nothing is known of; `dwell_s`: for how long its mode is known to run."""
        return cls(mode=mode, dwell_s=dwell_s)


def to_plain(state: State) -> dict[str, object]:
    """Return the state as JSON's kinds."""
    trial, frozen, at = state.trial, state.frozen, state.at
    return {
        "format": FORMAT,
        "mode": None if state.mode is None else str(state.mode),
        "at": None if at is None else {"mono_s": at.mono_s, "wall_s": at.wall_s, "boot": at.boot},
        "clock_s": state.clock_s,
        "work": {str(each): value for each, value in state.work.items()},
        "gains": {str(each): value for each, value in state.gains.items()},
        "paces": [[seconds, *pair] for seconds, pair in state.paces.items()],
        "watched_s": state.watched_s,
        "excess": state.excess,
        "since_look_s": state.since_look_s,
        "dwell_s": state.dwell_s,
        "spent": [[one.at_s, one.count, one.away_s] for one in state.spent],
        "trial": None
        if trial is None
        else {
            "old": str(trial.old),
            "seconds": trial.seconds,
            "measured_s": trial.measured_s,
            "measured": trial.measured,
            "expected_old": trial.expected_old,
            "expected_new": trial.expected_new,
        },
        "frozen": None if frozen is None else {"reason": frozen.reason, "left_s": frozen.left_s},
    }


def from_plain(plain: object) -> State:
    """Read what `to_plain` gave; raises ValueError, which says where, for anything else: a state is taken whole or not at all."""
    body = _object(plain, "the state")
    if body.get("format") != FORMAT:
        raise ValueError(f"the state is of format {body.get('format')!r}, not {FORMAT}")
    at = body.get("at")
    return State(
        mode=_optional(body.get("mode"), _mode),
        at=_optional(at, _now),
        clock_s=_number(body.get("clock_s"), "clock_s"),
        work=_by_mode(body.get("work"), "work"),
        gains=_by_mode(body.get("gains"), "gains"),
        paces={row[0]: (row[1], row[2]) for row in _rows(body.get("paces"), "paces")},
        watched_s=_number(body.get("watched_s"), "watched_s"),
        excess=_number(body.get("excess"), "excess"),
        since_look_s=_number(body.get("since_look_s"), "since_look_s"),
        dwell_s=_number(body.get("dwell_s"), "dwell_s"),
        spent=tuple(Spent(at_s=row[0], count=int(row[1]), away_s=row[2]) for row in _rows(body.get("spent"), "spent")),
        trial=_optional(body.get("trial"), _trial),
        frozen=_optional(body.get("frozen"), _freeze),
    )


def _optional(value: object, read: Callable[[object], _T]) -> _T | None:
    return None if value is None else read(value)


def _object(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")
    return value


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} is no number from 0 up")
    return float(value)


def _mode(value: object) -> Mode:
    if not isinstance(value, str):
        raise ValueError("a mode is no text")
    return modes.parse(value)


def _now(value: object) -> Now:
    body = _object(value, "at")
    boot = body.get("boot")
    if not isinstance(boot, str):
        raise ValueError("at.boot is no text")
    return Now(
        mono_s=_number(body.get("mono_s"), "at.mono_s"), wall_s=_number(body.get("wall_s"), "at.wall_s"), boot=boot
    )


def _by_mode(value: object, name: str) -> dict[Mode, float]:
    body = _object(value, name)
    if len(body) > MOST_MODES:
        raise ValueError(f"{name} has more than {MOST_MODES} modes")
    return {_mode(key): _number(number, f"{name}.{key}") for key, number in body.items()}


def _rows(value: object, name: str) -> list[tuple[float, float, float]]:
    if not isinstance(value, list) or len(value) > MOST_MODES:
        raise ValueError(f"{name} is no list of at most {MOST_MODES} rows")
    rows = []
    for place, row in enumerate(value):
        if not isinstance(row, list) or len(row) != len(("first", "second", "third")):
            raise ValueError(f"{name}[{place}] is no row of three numbers")
        first, second, third = (_number(each, f"{name}[{place}]") for each in row)
        rows.append((first, second, third))
    return rows


def _trial(value: object) -> Trial:
    body = _object(value, "trial")
    names = ("seconds", "measured_s", "measured", "expected_old", "expected_new")
    seconds, measured_s, measured, old, new = (_number(body.get(name), f"trial.{name}") for name in names)
    return Trial(
        old=_mode(body.get("old")),
        seconds=seconds,
        measured_s=measured_s,
        measured=measured,
        expected_old=old,
        expected_new=new,
    )


def _freeze(value: object) -> Freeze:
    body = _object(value, "frozen")
    reason = body.get("reason")
    if not isinstance(reason, str):
        raise ValueError("frozen.reason is no text")
    return Freeze(reason=reason, left_s=_number(body.get("left_s"), "frozen.left_s"))
