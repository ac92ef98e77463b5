"""The knobs: how large a tree may be, where they come from, and what is refused of them and why.

Pure: values in, values or `KnobError` out. At the start they come from environment variables, since a plugin of SGLang cannot
add flags; later over HTTP (`live`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

BUDGET = "DDTREE_BUDGET"
TOPK = "DDTREE_TOPK"
MAX_BUDGET = "DDTREE_MAX_BUDGET"
MAX_TOPK = "DDTREE_MAX_TOPK"
POLICY = "DDTREE_POLICY"
EVERY = "DDTREE_METRICS_EVERY"

DEFAULT_BUDGET = 16
DEFAULT_TOPK = 4
DEFAULT_EVERY = 40
# A verify pass of more nodes than this was nowhere found to pay; the width also sets what each request reserves of the cache.
HIGHEST_BUDGET = 1024
HIGHEST_TOPK = 64

LIVE_BUDGET = "ddtree_budget"
LIVE_TOPK = "ddtree_topk"
# Numbers are all that /set_internal_state takes, so that a table is said row by row: ddtree_budget_from_4 = 8.
LIVE_ROW = "ddtree_budget_from_"
ROW = re.compile(rf"{LIVE_ROW}[0-9]{{1,6}}")


class KnobError(ValueError):
    """A knob that cannot be so; the message says which, what it was and what it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a started server can do at most; the tree's width decides how much of the cache a request reserves."""

    block_size: int
    max_budget: int
    max_topk: int

    @property
    def width(self) -> int:
        """The most tokens of a request that one pass looks at: the root with its tree, or a draft's block."""
        return max(self.max_budget + 1, self.block_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What holds at a step. A budget of 0 drafts nothing; topk 1 with a budget of block - 1 or more is linear DFlash.

    `policy` are rows (from how many requests on, budget), ascending; where there are any, they decide instead of `budget`.
    """

    budget: int
    topk: int
    policy: tuple[tuple[int, int], ...] = ()

    def at(self, requests: int) -> int:
        """Return the budget for a batch of that many requests; below the first row, that of the first row."""
        fitting = [budget for start, budget in self.policy if start <= requests]
        if fitting:
            return fitting[-1]
        return self.policy[0][1] if self.policy else self.budget


def at_start(environ: Mapping[str, str], block_size: int) -> tuple[Limits, Knobs]:
    """Return limits and knobs of a server with that block, from its environment."""
    budget = _number(environ, BUDGET, DEFAULT_BUDGET, low=0, high=HIGHEST_BUDGET)
    topk = _number(environ, TOPK, DEFAULT_TOPK, low=1, high=HIGHEST_TOPK)
    policy = parse_policy(environ.get(POLICY, ""))
    # A server that serves a tree shall be able to serve the chain too, without a word about it.
    most = max(budget, block_size - 1, *(row for _, row in policy)) if policy else max(budget, block_size - 1)
    limits = Limits(
        block_size=block_size,
        max_budget=_number(environ, MAX_BUDGET, most, low=most, high=HIGHEST_BUDGET),
        max_topk=_number(environ, MAX_TOPK, max(topk, DEFAULT_TOPK), low=topk, high=HIGHEST_TOPK),
    )
    return limits, Knobs(budget=budget, topk=topk, policy=policy)


def told(limits: Limits, held: Knobs) -> str:
    """Return limits and knobs in one line of key=value."""
    return (
        f"block_size={limits.block_size}, tree_budget={held.budget}, topk_cap={held.topk}, max_budget={limits.max_budget}, "
        f"max_topk={limits.max_topk}, policy={','.join(f'{start}:{budget}' for start, budget in held.policy) or 'none'}"
    )


def every(environ: Mapping[str, str]) -> int:
    """Return after how many steps a line of metrics is printed."""
    return _number(environ, EVERY, DEFAULT_EVERY, low=1, high=1_000_000)


def _number(environ: Mapping[str, str], name: str, default: int, *, low: int, high: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        raise KnobError(f"{name}={text} is no whole number") from None
    if not low <= value <= high:
        raise KnobError(f"{name}={value} is outside {low} to {high}")
    return value


def parse_policy(text: str) -> tuple[tuple[int, int], ...]:
    """Read "1:31,4:8,16:0": from 1 request on a budget of 31, from 4 on 8, from 16 on no draft."""
    rows = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        start, _, budget = part.partition(":")
        try:
            rows.append((int(start), int(budget)))
        except ValueError:
            raise KnobError(f"{POLICY}: {part} is no row like 4:8 (from 4 requests on, a budget of 8)") from None
    return _checked(rows)


def _checked(rows: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    starts = [start for start, _ in rows]
    if len(set(starts)) < len(starts):
        raise KnobError("a policy has two rows for one number of requests")
    for start, budget in rows:
        if start < 1:
            raise KnobError(f"a policy's row begins at {start} requests; the least is 1")
        if not 0 <= budget <= HIGHEST_BUDGET:
            raise KnobError(f"a policy's budget of {budget} is outside 0 to {HIGHEST_BUDGET}")
    return tuple(sorted(rows))


def is_ours(name: str) -> bool:
    """Whether a name of /set_internal_state is one of the plugin's."""
    return name.startswith("ddtree_")


def changed(knobs: Knobs, limits: Limits, wanted: Mapping[str, float]) -> Knobs:
    """Return the knobs after a live change, all of it or, with `KnobError`, none.

    A budget alone ends a policy; rows replace the whole table.
    """
    values = {name: _whole(name, value) for name, value in wanted.items()}
    rows = []
    for name, value in values.items():
        if name == LIVE_BUDGET:
            _within(name, value, 0, limits.max_budget, f"set {MAX_BUDGET} before the start for more")
            knobs = replace(knobs, budget=value, policy=())
        elif name == LIVE_TOPK:
            _within(name, value, 1, limits.max_topk, f"set {MAX_TOPK} before the start for more")
            knobs = replace(knobs, topk=value)
        elif ROW.fullmatch(name):
            _within(name, value, 0, limits.max_budget, f"set {MAX_BUDGET} before the start for more")
            rows.append((int(name.removeprefix(LIVE_ROW)), value))
        else:
            raise KnobError(f"{name} is no knob: {LIVE_BUDGET}, {LIVE_TOPK} and {LIVE_ROW}N are")
    if rows and LIVE_BUDGET in values:
        raise KnobError(f"{LIVE_BUDGET} and a policy's rows were given at once: a budget ends the policy")
    return replace(knobs, policy=_checked(rows)) if rows else knobs


def _whole(name: str, value: float) -> int:
    if not math.isfinite(value) or value != int(value):
        raise KnobError(f"{name}={value} is no whole number")
    return int(value)


def _within(name: str, value: int, low: int, high: int, hint: str) -> None:
    if not low <= value <= high:
        raise KnobError(f"{name}={value} is outside {low} to {high} ({hint})")
