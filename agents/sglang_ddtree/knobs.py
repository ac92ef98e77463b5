"""The knobs: how large a tree may be, where they come from, and what is refused of them and why.

Pure: values in, values or `KnobError` out. At the start they come from environment variables, since a plugin of SGLang cannot
add flags; later over HTTP (`live`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

BUDGET = "DDTREE_BUDGET"
TOPK = "DDTREE_TOPK"
MAX_BUDGET = "DDTREE_MAX_BUDGET"
MAX_TOPK = "DDTREE_MAX_TOPK"
GRAPHS = "DDTREE_GRAPH_BUDGETS"
POLICY = "DDTREE_POLICY"
EVERY = "DDTREE_METRICS_EVERY"

DEFAULT_BUDGET = 16
DEFAULT_TOPK = 4
# As often as the engine prints a decode line by itself: who proves a tree waits for its line.
DEFAULT_EVERY = 40
# A verify pass of more nodes than this was nowhere found to pay; the width also sets what each request reserves of the cache.
HIGHEST_BUDGET = 1024
HIGHEST_TOPK = 64

# What is set live and told in /server_info, by one name each.
LIVE_BUDGET = "ddtree_budget"
LIVE_TOPK = "ddtree_topk"
LIVE_POLICY = "ddtree_policy"
# Numbers are all that /set_internal_state takes, so that a table is said row by row: ddtree_budget_from_4 = 8.
ROW = re.compile(rf"({LIVE_BUDGET}|{LIVE_TOPK})_from_([0-9]{{1,6}})")
_DECODE_LINES = "the engine's --decode-log-interval: its decode lines need a tree's among them"
NAMES = f"{LIVE_BUDGET}, {LIVE_TOPK}, {LIVE_BUDGET}_from_N and {LIVE_TOPK}_from_N"


class KnobError(ValueError):
    """A knob that cannot be so; the message says which, what it was and what it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a started server can do at most; the tree's width decides how much of the cache a request reserves.

    `graph_budgets`: budgets that it may be turned to often, and that are worth graphs of their own.
    """

    block_size: int
    max_budget: int
    max_topk: int
    graph_budgets: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """The most tokens of a request that one pass looks at: the root with its tree, or a draft's block."""
        return max(self.max_budget + 1, self.block_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What one pass goes by. A budget of 0 drafts nothing; topk 1 with a budget of block - 1 or more is linear DFlash."""

    budget: int
    topk: int

    def nodes(self, block_size: int) -> int:
        """Return the nodes of its tree, root included: as many as the budget allows, or as many as there can be."""
        there = at_depth = 1
        for _ in range(block_size - 1):
            at_depth *= self.topk
            there += at_depth
            if there > self.budget:
                return self.budget + 1
        return there


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a policy: the setting for that many requests and more."""

    start: int
    setting: Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What holds: a setting, and a policy's rows, ascending; where there are any, they decide instead of it."""

    setting: Setting
    policy: tuple[Row, ...] = ()

    def at(self, requests: int) -> Setting:
        """Return the setting for a batch of that many requests; below the first row, that of the first row."""
        if not self.policy:
            return self.setting
        return next((row for row in reversed(self.policy) if row.start <= requests), self.policy[0]).setting

    def settings(self) -> tuple[Setting, ...]:
        """Return every setting that is named."""
        return self.setting, *(row.setting for row in self.policy)


def at_start(environ: Mapping[str, str], block_size: int) -> tuple[Limits, Knobs]:
    """Return limits and knobs of a server with that block, from its environment."""
    topk = _number(environ, TOPK, DEFAULT_TOPK, low=1, high=HIGHEST_TOPK)
    usual = block_size - 1 if topk == 1 else DEFAULT_BUDGET
    budget = _number(environ, BUDGET, usual, low=0, high=HIGHEST_BUDGET)
    held = Knobs(setting=Setting(budget=budget, topk=topk), policy=parse_policy(environ.get(POLICY, ""), topk))
    # A server that serves a tree shall be able to serve the chain too, without a word about it.
    budgets = max(block_size - 1, *(one.budget for one in held.settings()))
    topks = max(one.topk for one in held.settings())
    limits = Limits(
        block_size=block_size,
        max_budget=_number(environ, MAX_BUDGET, budgets, low=budgets, high=HIGHEST_BUDGET),
        max_topk=_number(environ, MAX_TOPK, max(topks, DEFAULT_TOPK), low=topks, high=HIGHEST_TOPK),
    )
    return replace(limits, graph_budgets=_budgets(environ.get(GRAPHS, ""), limits.max_budget)), held


def _budgets(text: str, most: int) -> tuple[int, ...]:
    """Read "8,16,32"."""
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if not part.isdecimal() or int(part) > most:
            raise KnobError(f"{GRAPHS}: {part} is no budget of 0 to {most} (set {MAX_BUDGET} for more)")
        found.append(int(part))
    return tuple(found)


def told(limits: Limits, held: Knobs) -> str:
    """Return limits and knobs in one line of key=value; the policy as `DDTREE_POLICY` takes it."""
    rows = (f"{row.start}:{row.setting.budget}/{row.setting.topk}" for row in held.policy)
    return (
        f"block_size={limits.block_size}, tree_budget={held.setting.budget}, topk_cap={held.setting.topk}, "
        f"max_budget={limits.max_budget}, max_topk={limits.max_topk}, policy={','.join(rows) or 'none'}"
    )


def state(limits: Limits, held: Knobs) -> dict[str, object]:
    """Return limits and knobs as /server_info tells them, each by the name under which it is set."""
    return {
        **_named(held.setting),
        LIVE_POLICY: [{"from": row.start, **_named(row.setting)} for row in held.policy],
        "ddtree_block_size": limits.block_size,
        "ddtree_max_budget": limits.max_budget,
        "ddtree_max_topk": limits.max_topk,
    }


def _named(setting: Setting) -> dict[str, object]:
    return {LIVE_BUDGET: setting.budget, LIVE_TOPK: setting.topk}


def every(environ: Mapping[str, str], decode_lines: int) -> int:
    """Return after how many steps a line of metrics is printed; by itself 40, or as often as the engine prints its decode line.

    Never less often than that: to who reads the log, decode lines without a tree's among them are those of another algo.
    """
    usual = min(DEFAULT_EVERY, decode_lines)
    return _number(environ, EVERY, usual, low=1, high=decode_lines, hint=f" ({_DECODE_LINES})")


def _number(environ: Mapping[str, str], name: str, default: int, *, low: int, high: int, hint: str = "") -> int:
    text = environ.get(name, "")
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        raise KnobError(f"{name}={text} is no whole number") from None
    _within(f"{name}={value}", value, low, high, hint)
    return value


def parse_policy(text: str, topk: int) -> tuple[Row, ...]:
    """Read "1:31/8,4:7/1,16:0": from 1 request on a budget of 31 with top-k 8, from 4 on the chain, from 16 on no draft.

    A row without its top-k has `topk`.
    """
    rows = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        found = re.fullmatch(r"([0-9]{1,6}):([0-9]{1,6})(?:/([0-9]{1,6}))?", part)
        if found is None:
            raise KnobError(f"{POLICY}: {part} is no row like 4:8/2 (from 4 requests on, a budget of 8 with top-k 2)")
        setting = Setting(budget=int(found[2]), topk=topk if found[3] is None else int(found[3]))
        _within(f"{POLICY}: the budget of {part}", setting.budget, 0, HIGHEST_BUDGET)
        _within(f"{POLICY}: the top-k of {part}", setting.topk, 1, HIGHEST_TOPK)
        rows.append(Row(start=int(found[1]), setting=setting))
    return _table(rows)


def _table(rows: Iterable[Row]) -> tuple[Row, ...]:
    table = tuple(sorted(rows, key=lambda row: row.start))
    if table and table[0].start < 1:
        raise KnobError("a policy's row begins at 0 requests; the least is 1")
    for row, following in pairwise(table):
        if row.start == following.start:
            raise KnobError(f"a policy has two rows from {row.start} on")
    return table


def is_ours(name: str) -> bool:
    """Whether a name of /set_internal_state is one of the plugin's."""
    return name.startswith("ddtree_")


def changed(held: Knobs, limits: Limits, wanted: Mapping[str, float]) -> Knobs:
    """Return the knobs after a live change, all of it or, with `KnobError`, none.

    A budget or a top-k by itself ends a policy; rows replace the whole table, and one without its top-k has the present one.
    """
    plain: dict[str, int] = {}
    rows: dict[str, dict[int, int]] = {LIVE_BUDGET: {}, LIVE_TOPK: {}}
    for name, value in wanted.items():
        row = ROW.fullmatch(name)
        kind = row[1] if row else name
        if kind not in rows:
            raise KnobError(f"{name} is no knob: {NAMES} are")
        number = _allowed(name, kind, value, limits)
        if row is None:
            plain[kind] = number
        elif int(row[2]) in rows[kind]:
            raise KnobError(f"a policy has two rows from {int(row[2])} on")
        else:
            rows[kind][int(row[2])] = number
    budgets, topks = rows[LIVE_BUDGET], rows[LIVE_TOPK]
    if plain and (budgets or topks):
        raise KnobError(f"{next(iter(plain))} and a policy's rows were given at once: it ends the policy")
    if alone := topks.keys() - budgets.keys():
        raise KnobError(f"{LIVE_TOPK}_from_{min(alone)} was given without {LIVE_BUDGET}_from_{min(alone)}")
    topk = plain.get(LIVE_TOPK, held.setting.topk)
    if plain:
        return Knobs(setting=Setting(budget=plain.get(LIVE_BUDGET, held.setting.budget), topk=topk))
    table = _table(
        Row(start=start, setting=Setting(budget=budget, topk=topks.get(start, topk)))
        for start, budget in budgets.items()
    )
    return replace(held, policy=table) if table else held


def _allowed(name: str, kind: str, value: float, limits: Limits) -> int:
    low, high, most = (0, limits.max_budget, MAX_BUDGET) if kind == LIVE_BUDGET else (1, limits.max_topk, MAX_TOPK)
    if not math.isfinite(value) or value != int(value):
        raise KnobError(f"{name}={value} is no whole number")
    _within(f"{name}={int(value)}", value, low, high, f" (set {most} before the start for more)")
    return int(value)


def _within(what: str, value: float, low: int, high: int, hint: str = "") -> None:
    if not low <= value <= high:
        raise KnobError(f"{what} is outside {low} to {high}{hint}")
