"""A table of modes for an engine that follows it: the best at each number of requests, told where nothing forbids it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control import policy, policy_table
from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.policy_costs import Flat
from specctl.control.policy_state import Freeze
from specctl.control.policy_table import TOLERANCE, Followed, Wanted
from specctl.control.policy_types import Decision, Hold, Means, Pin, SetTable, SwitchAlgo, View
from specctl.control.rates import Estimate
from specctl.control.rates_table import Table as RatesTable
from specctl.control.table import Table
from tests.unit.control.policy_worlds import (
    CHAIN,
    GOOD,
    LIMITS,
    LIVE,
    NARROW,
    PLAIN,
    RESTART,
    START,
    TABLE,
    WIDE,
    settled,
)

VIEW = replace(GOOD, costs=Flat(each=LIVE), modes=(WIDE, NARROW, CHAIN), concurrency=2.0)
WANTED = Table(((1, WIDE), (2, NARROW), (31, CHAIN)))
FOLLOWS = Followed(any=True, table=WANTED)


def decided(
    view: View = VIEW, *, wished: bool = True, followed: Followed = FOLLOWS, most: int = 64
) -> Decision | SetTable:
    """Decide about a server that is long in its mode."""
    wanted = Wanted(most=most) if wished else None
    return policy_table.decide(view, settled(view), LIMITS, START, followed=followed, wanted=wanted)


def test_a_table_is_given_once() -> None:
    """Where none is followed, or another one, the engine is told it, with what it says; the one that is followed is left alone."""
    told = decided(followed=Followed())
    assert isinstance(told, SetTable)
    assert told.table is not None
    assert [mode for _, mode in told.table.rows] == [WIDE, NARROW, CHAIN]
    assert (told.why.rule, "the engine follows no table" in told.why.reason) == ("table", True)
    again = decided(followed=Followed(any=True, table=told.table))
    assert isinstance(again, Hold)
    assert again.why.rule == "table-holds"
    other = decided(followed=Followed(any=True, table=Table(((1, CHAIN),))))
    assert isinstance(other, SetTable)
    assert other.table == told.table


@given(
    rates=st.lists(
        st.dictionaries(st.sampled_from((WIDE, NARROW, CHAIN)), st.floats(1.0, 1000.0), min_size=1),
        min_size=1,
        max_size=12,
    ),
    metric=st.sampled_from(Metric),
)
def test_every_row_is_within_the_tolerance_of_the_best(rates: list[dict[Mode, float]], metric: Metric) -> None:
    """At each number of requests that is known of, no other mode is worth more than the tolerance above the table's."""
    points = {
        mode: tuple((float(c), row[mode]) for c, row in enumerate(rates, start=1) if mode in row)
        for mode in (WIDE, NARROW, CHAIN)
    }
    model = RatesTable(points={mode: found for mode, found in points.items() if found}, max_running=len(rates))
    objective = Objective(metric=metric)
    table = policy_table.best(model, objective, (WIDE, NARROW, CHAIN), len(rates))
    known = [
        {mode: found.low for mode in points if (found := model.tokens_s(mode, float(c))) is not None}
        for c in range(1, len(rates) + 1)
    ]
    if table is None:
        assert not any(known[:1])
        return
    for requests, row in enumerate(known, start=1):
        if row and requests >= table.rows[0][0]:
            assert row.get(table.at(requests), 0.0) >= max(row.values()) * (1 - TOLERANCE) - 1e-9


def test_modes_that_take_a_start_are_in_no_table() -> None:
    """A mode that only a restart reaches cannot be a row, however good it is."""

    class Ways:
        def price(self, old: Mode, new: Mode) -> object:
            return RESTART if new == CHAIN else LIVE

    told = decided(replace(VIEW, costs=Ways()), followed=Followed())  # type: ignore[arg-type]  # a Costs in all but name
    assert isinstance(told, SetTable)
    assert told.table is not None
    assert [mode for _, mode in told.table.rows] == [WIDE, NARROW]


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"hold": "firmware"}, "held"),
        ({"mode": None}, "input-missing"),
        ({"age_s": 60.0}, "input-stale"),
        ({"findings": ("M013: lies",)}, "input-contradicts"),
        ({"lease_holder": "ann"}, "lease-held"),
        ({"gpu_troubles": ("GPU 3 throttles",)}, "gpu-trouble"),
        ({"adapts_itself": True}, "engine-adapts"),
        ({"rates": None}, "calibrate-first"),
        ({"refused": {Means.LIVE: "the key is refused"}}, "means-refused"),
    ],
)
@pytest.mark.parametrize("followed", [Followed(), Followed(any=True, table=Table(((1, CHAIN),)))])
def test_what_forbids_an_act_forbids_a_table(changed: dict[str, object], rule: str, followed: Followed) -> None:
    """No table is given or changed where no switch might be made."""
    answer = decided(replace(VIEW, **changed), followed=followed)  # type: ignore[arg-type]  # fields of View
    assert isinstance(answer, Hold)
    assert answer.why.rule == rule


def test_a_freeze_holds_here_too() -> None:
    """After something failed nothing is told until a person resumes."""
    state = replace(settled(VIEW), frozen=Freeze(reason="it failed", left_s=100.0))
    answer = policy_table.decide(VIEW, state, LIMITS, START, followed=Followed(), wanted=Wanted())
    assert isinstance(answer, Hold)
    assert answer.why.rule == "frozen"


def test_a_pin_ends_the_table_and_then_holds_as_ever() -> None:
    """Even where the row of now is what is pinned: the next request would change it."""
    pinned = replace(VIEW, pin=Pin(mode=CHAIN, left_s=60.0), mode=CHAIN)
    ends = decided(pinned)
    assert isinstance(ends, SetTable)
    assert (ends.table, ends.why.rule) == (None, "table-ends")
    holds = decided(pinned, followed=Followed())
    assert isinstance(holds, Hold)
    assert holds.why.rule == "pinned"
    goes = decided(replace(pinned, mode=WIDE), followed=Followed())
    assert isinstance(goes, SwitchAlgo)
    assert goes.mode == CHAIN


def test_a_table_that_is_not_wished_for_ends() -> None:
    """Whoever gave it; then the policy decides as it does anywhere."""
    ends = decided(wished=False)
    assert isinstance(ends, SetTable)
    assert ends.table is None
    assert decided(wished=False, followed=Followed()) == policy.decide(VIEW, settled(VIEW), LIMITS, START)


def test_nothing_known_of_one_request_is_no_table() -> None:
    """A table that begins with a guess is none."""
    model = replace(TABLE, points={PLAIN: ((1.0, 70.0), (8.0, 500.0))})
    assert policy_table.best(model, VIEW.objective, (WIDE, CHAIN), 8) is None


@pytest.mark.parametrize("rows", [(), ((0, CHAIN),), ((2, CHAIN), (1, WIDE)), ((1, CHAIN), (1, WIDE))])
def test_a_table_rises(rows: tuple[tuple[int, Mode], ...]) -> None:
    """Rows that do not rise from one request on are no table."""
    with pytest.raises(ValueError, match="the rows of a table begin at 1"):
        Table(rows)


def test_a_table_holds_below_its_first_row() -> None:
    """Nothing else is said of fewer requests."""
    table = Table(((2, WIDE), (8, CHAIN)))
    assert [table.at(requests) for requests in (0, 1, 2, 7, 8, 500)] == [WIDE, WIDE, WIDE, WIDE, CHAIN, CHAIN]
    assert str(table) == "from 2 ddtree:tree_budget=64, from 8 dflash"


def test_the_table_does_not_depend_on_the_mode_of_now() -> None:
    """Equals are told apart by the modes' order alone: else the table would change with each change of load."""
    even = RatesTable(points=dict.fromkeys((WIDE, NARROW, CHAIN), ((1.0, 10.0), (64.0, 10.0))), max_running=64)
    tables = {Wanted()(replace(VIEW, mode=mode, rates=even)) for mode in (WIDE, NARROW, CHAIN)}
    assert tables == {Table(((1, WIDE),))}


def test_a_table_is_worked_out_once_a_model() -> None:
    """Asked each second, it is worked out anew for another model, other modes, or another most alone."""

    class Counting:
        modes = (WIDE, NARROW, CHAIN)
        asked = 0

        def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
            self.asked += 1
            return TABLE.tokens_s(mode, concurrency)

    model, wanted = Counting(), Wanted(most=8)
    view = replace(VIEW, rates=model)
    first = wanted(view)
    asked = model.asked
    assert wanted(replace(view, concurrency=40.0, tokens_s=7.0)) == first
    assert model.asked == asked > 0
    wanted.most = 16
    wanted(view)
    assert model.asked > asked
    assert wanted(replace(view, rates=None)) is None
