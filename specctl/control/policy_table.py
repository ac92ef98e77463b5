"""Decide about a server whose engine follows a table of modes by itself: which table, and whether it may be told it now. Pure.

What forbids an act forbids this one too, and a person's pin ends the table. Beyond that the agent supervises: its model of what
each mode serves here learns from what is measured, and when another table follows from it, the engine is told that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specctl.control import policy, policy_book, policy_words
from specctl.control import policy_guard as guards
from specctl.control.limits import Limits
from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.policy_state import State
from specctl.control.policy_types import Decision, Grounds, Hold, Means, Now, SetTable, View
from specctl.control.rates import Rates
from specctl.control.table import Table

MOST = 256
"""An engine that does not say how many requests it runs at most is given a table up to this."""
TOLERANCE = 0.03
"""A mode within this share of the best is kept from the row below: no throughput model is that exact."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What an engine says that it follows: whether there is `any` table, and which; None: none, or not understood."""

    any: bool = False
    table: Table | None = None


def decide(
    view: View,
    state: State,
    limits: Limits,
    now: Now,
    *,
    followed: Followed,
    wanted: Callable[[View], Table | None] | None,
) -> Decision | SetTable:
    """Say what to do; `view.mode` is what the engine was told beside a table.

    `wanted` works out the table that the engine should follow, None: nothing is known of one request; itself None: the inventory
    has it follow none.
    """
    pinned = view.pin is not None and view.pin.left_s > 0
    forbidden = guards.forbidden(view, limits)
    if not followed.any and (pinned or wanted is None):
        return policy.decide(view, state, limits, now)
    if forbidden is not None:
        return Hold(why=forbidden)
    if pinned or wanted is None:
        reason = "a mode is pinned" if pinned else "the inventory says agent.table: false"
        why = Grounds(rule="table-ends", reason=f"{reason}, and the engine follows a table", otherwise="no table")
        return SetTable(table=None, why=why)
    if state.frozen is not None:
        return Hold(why=policy_words.frozen(state.frozen), until_s=state.frozen.left_s)
    refusal = view.refused.get(Means.LIVE)
    if refusal is not None:
        reason = f"the engine cannot be told a table: {refusal}"
        return Hold(why=Grounds(rule="means-refused", reason=reason, otherwise="a running engine that takes one"))
    table = wanted(view)
    if table is None:
        return Hold(why=policy_words.uncalibrated(view))
    if table == followed.table:
        reason = f"the engine follows the table: {table}"
        return Hold(
            why=Grounds(rule="table-holds", reason=reason, otherwise="measurements from which another table follows")
        )
    return SetTable(table=table, why=_grounds(table, followed.table))


def reached(view: View) -> tuple[Mode, ...]:
    """Return the present mode and those that a running engine can go to from it, in the view's order."""
    running = view.mode
    if running is None:
        return ()
    prices = {mode: view.costs.price(running, mode) for mode in view.modes if mode != running}
    live = {mode for mode, price in prices.items() if price is not None and price.means is Means.LIVE}
    return tuple(mode for mode in view.modes if mode == running or mode in live)


@dataclass(slots=True)
class Wanted:
    """The table that follows from a model of what each mode serves, kept until there is another model: it is asked each second."""

    most: int = MOST
    _of: tuple[object, ...] = ()
    _table: Table | None = None

    def __call__(self, view: View) -> Table | None:
        """Return the table; None where nothing is known of one request."""
        modes = reached(view)
        of = (view.rates, view.objective, modes, self.most)
        if len(self._of) != len(of) or self._of[0] is not of[0] or self._of[1:] != of[1:]:
            self._of = of
            self._table = None if view.rates is None else best(view.rates, view.objective, modes, self.most)
        return self._table


def _grounds(wanted: Table, followed: Table | None) -> Grounds:
    was = "no table" if followed is None else f"another: {followed}"
    return Grounds(
        rule="table",
        reason=f"by what each mode serves here the table is: {wanted}; the engine follows {was}",
        inputs={"rows": len(wanted.rows)},
        otherwise="a table that is followed already",
    )


def best(rates: Rates, objective: Objective, modes: tuple[Mode, ...], most: int) -> Table | None:
    """Return the table of the modes that are worth most at 1 to `most` requests; None where nothing is known of one request.

    A mode is taken at the low end of its estimate. Above what is known the last row holds.
    """
    capacities = {mode: policy_book.capacity(rates, objective, mode) for mode in modes}
    rows: list[tuple[int, Mode]] = []
    for requests in range(1, most + 1):
        worths = {
            mode: objective.worth(found.low, requests, capacity=capacities[mode])
            for mode in modes
            if (found := rates.tokens_s(mode, requests)) is not None
        }
        if not worths:
            if not rows:
                return None
            continue
        chosen = max(worths, key=lambda mode: worths[mode])
        kept = rows[-1][1] if rows else None
        if kept is None or worths.get(kept, 0.0) < worths[chosen] * (1 - TOLERANCE):
            rows.append((requests, chosen))
    return Table(tuple(rows)) if rows else None
