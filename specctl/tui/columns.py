"""The columns of the table of servers: what each shows, how it sorts, and which go first where the screen is narrow; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from specctl.control.sight import Sight, State
from specctl.tui import spark, words
from specctl.tui.problems import Problem, load_text
from specctl.ui.text import UNKNOWN

GAP = 2
# From such a width on, what a server does now has room for a clause before lesser columns have any.
ROOMY, CLAUSE = 110, 30
FLAG = "!"
_DIGITS = re.compile(r"(\d+)")
# States in the order in which a person wants to see them: what is wrong first.
_GRAVITY = (State.READY, State.NOT_DEPLOYED, State.STOPPED, State.LOADING, State.NOT_READY)

SortKey = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One server in the table: what it looks like, its newest tokens a second, and what is wrong with it."""

    sight: Sight
    trend: tuple[float | None, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it from all others."""
        return (self.sight.host, self.sight.server)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; `keep`: those with the least go first. `most`: its widest in cells, 0 where it takes what is left."""

    key: str
    title: str
    keep: int
    text: Callable[[Row, int], str]
    sort: Callable[[Row], SortKey | None]
    style: Callable[[Row], str] = lambda _row: ""
    right: bool = False
    most: int = 12
    least: int = 0
    falling: bool = False

    @property
    def least_width(self) -> int:
        """Return the narrowest that it is worth showing."""
        return max(self.least, cell_len(self.title))


def natural(text: str) -> SortKey:
    """Return a key by which gpu2 comes before gpu10."""
    parts = _DIGITS.split(text.lower())
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)


def _number(value: float | None) -> SortKey | None:
    value = words.known(value)
    return None if value is None else (value,)


def _stale(row: Row) -> bool:
    told = row.sight.running or row.sight.tokens_per_s
    return told is not None and told.stale


def _quiet(row: Row) -> str:
    return "quiet" if _stale(row) else ""


def _queue_style(row: Row) -> str:
    return _quiet(row) or ("warn" if words.shown(row.sight.waiting) else "")


def _state(row: Row, _width: int) -> str:
    text = words.state_text(row.sight)
    return f"{text} {FLAG}" if row.problems else text


def _state_style(row: Row) -> str:
    return "warn" if row.problems and row.sight.state == State.READY else words.state_style(row.sight)


def _gravity(row: Row) -> SortKey:
    state = row.sight.state
    place = [each.value for each in _GRAVITY].index(state) if state in _GRAVITY else len(_GRAVITY)
    return (place, len(row.problems), state)


def _decision(row: Row, _width: int) -> str:
    """Return what a person wants to know next: the load, else what is wrong, else what the agent decided."""
    grave = [problem.text for problem in row.problems if problem.grave]
    return load_text(row.sight) or (grave[0] if grave else words.decision_text(row.sight))


def _decision_style(row: Row) -> str:
    return "bad" if row.sight.loading is None and any(problem.grave for problem in row.problems) else ""


def _trend(row: Row, width: int) -> str:
    """Return the newest past of tokens a second as a line of bars."""
    return spark.line(row.trend[-width:], width)


def _gpu_text(row: Row, _width: int) -> str:
    gpus = row.sight.gpus
    total = words.power_w(gpus)
    return UNKNOWN if total is None else f"{len(gpus or ())}×{words.figure(total / max(len(gpus or ()), 1), 0)}"


def _gpu_style(row: Row) -> str:
    if row.sight.slowed:
        return "bad"
    return "quiet" if any(gpu.stale for gpu in row.sight.gpus or ()) else ""


def _memory(sight: Sight) -> float | None:
    found = [ratio for gpu in sight.gpus or () if (ratio := words.memory_ratio(gpu)) is not None]
    return max(found, default=None)


def _age(sight: Sight) -> float | None:
    age = sight.figures_age_s
    return sight.age_s if age is None else age


def _age_style(row: Row) -> str:
    return "warn" if _stale(row) or row.sight.age_s is None else "quiet"


def _owner(row: Row, _width: int) -> str:
    agent = row.sight.agent
    return UNKNOWN if agent is None or agent.conduct is None else words.one_line(agent.conduct)


def _figure(
    key: str,
    title: str,
    keep: int,
    value: Callable[[Sight], float | None],
    shown: Callable[[float | None], str],
    *,
    style: Callable[[Row], str] = _quiet,
    most: int = 7,
    least: int = 0,
) -> Column:
    """Return the column of a figure: it stands on the right and sorts from the largest."""
    return Column(
        key=key,
        title=title,
        keep=keep,
        text=lambda row, _: shown(value(row.sight)),
        sort=lambda row: _number(value(row.sight)),
        style=style,
        right=True,
        most=most,
        least=least,
        falling=True,
    )


COLUMNS: Sequence[Column] = (
    Column(
        key="host",
        title="HOST",
        keep=100,
        text=lambda row, _: words.one_line(row.sight.host),
        sort=lambda row: (natural(row.sight.host), natural(row.sight.server)),
        style=lambda _row: "host",
        most=28,
        least=6,
    ),
    Column(
        key="server",
        title="SERVER",
        keep=63,
        text=lambda row, _: words.one_line(row.sight.server),
        sort=lambda row: (natural(row.sight.server), natural(row.sight.host)),
        most=16,
    ),
    Column(
        key="group",
        title="GROUP",
        keep=15,
        text=lambda row, _: words.one_line(", ".join(row.sight.groups)) or UNKNOWN,
        sort=lambda row: tuple(natural(name) for name in row.sight.groups) or None,
        style=lambda _row: "quiet",
        most=14,
    ),
    Column(
        key="algo",
        title="ALGO",
        keep=95,
        text=lambda row, _: words.mode_text(row.sight.mode),
        sort=lambda row: None if row.sight.mode is None else (str(row.sight.mode.algo), row.sight.mode.knobs),
        most=16,
        least=6,
    ),
    Column(
        key="state",
        title="STATE",
        keep=99,
        text=_state,
        sort=_gravity,
        style=_state_style,
        most=18,
        least=8,
        falling=True,
    ),
    _figure("run", "RUN", 90, lambda sight: words.shown(sight.running), words.whole),
    _figure("queue", "QUEUE", 88, lambda sight: words.shown(sight.waiting), words.whole, style=_queue_style),
    _figure("tokens", "TOK/S", 93, lambda sight: words.shown(sight.tokens_per_s), words.figure, most=8, least=6),
    _figure(
        "accept", "ACCEPT", 86, lambda sight: words.shown(sight.accept_length), lambda value: words.figure(value, 2)
    ),
    _figure("kv", "KV", 66, lambda sight: words.shown(sight.kv_ratio), words.percent, most=6, least=5),
    _figure(
        "gpu", "GPU%", 56, lambda sight: words.busy_ratio(sight.gpus), words.percent, style=_gpu_style, most=6, least=5
    ),
    _figure("memory", "MEM%", 50, _memory, words.percent, style=_gpu_style, most=6, least=5),
    Column(
        key="power",
        title="GPU W",
        keep=64,
        text=_gpu_text,
        sort=lambda row: _number(words.power_w(row.sight.gpus)),
        style=_gpu_style,
        right=True,
        most=10,
        least=6,
        falling=True,
    ),
    _figure("temp", "TEMP", 40, lambda sight: words.hottest_c(sight.gpus), words.celsius, style=_gpu_style, least=5),
    Column(
        key="trend",
        title="TREND TOK/S",
        keep=62,
        text=_trend,
        sort=lambda row: _number(words.shown(row.sight.tokens_per_s)),
        style=lambda row: _quiet(row) or "line.tokens",
        most=40,
        least=12,
        falling=True,
    ),
    Column(
        key="agent",
        title="AGENT",
        keep=30,
        text=_owner,
        sort=lambda row: natural(_owner(row, 0)),
        style=lambda _row: "quiet",
        most=8,
    ),
    _figure("age", "AGE", 92, _age, words.ago, style=_age_style, most=8, least=6),
    Column(
        key="decision",
        title="NOW",
        keep=67,
        text=_decision,
        sort=lambda row: natural(_decision(row, 0)),
        style=_decision_style,
        most=0,
        least=18,
    ),
)
BY_KEY = {column.key: column for column in COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A column on the screen: where it begins and how wide it is, in cells."""

    column: Column
    start: int
    width: int


def fitting(wanted: dict[str, int], width: int) -> tuple[Place, ...]:
    """Lay out the columns in a width: those that matter least go until the rest fits; what is left goes to trend and decision.

    `wanted`: the widest text of each column.
    """
    wanted = {**wanted, "decision": CLAUSE if width >= ROOMY else 0}
    chosen = list(COLUMNS)
    while len(chosen) > 1 and _needed(chosen, wanted) > width:
        chosen.remove(min(chosen, key=lambda column: column.keep))
    widths = {column.key: _width(column, wanted) for column in chosen}
    left = max(width - _needed(chosen, wanted), 0)
    if "trend" in widths:
        more = min(left if "decision" not in widths else left // 3, BY_KEY["trend"].most - widths["trend"])
        widths["trend"] += more
        left -= more
    if "decision" in widths:
        widths["decision"] += left
    places, start = [], 0
    for column in chosen:
        places.append(Place(column=column, start=start, width=min(widths[column.key], max(width - start, 0))))
        start += widths[column.key] + GAP
    return tuple(places)


def _width(column: Column, wanted: dict[str, int]) -> int:
    if column.key == "trend":
        return column.least
    if column.most == 0:
        return max(column.least, wanted[column.key])
    return max(column.least_width, min(wanted.get(column.key, 0), column.most))


def _needed(columns: Sequence[Column], wanted: dict[str, int]) -> int:
    return sum(_width(column, wanted) for column in columns) + GAP * (len(columns) - 1)
