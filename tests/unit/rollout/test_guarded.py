"""The guard as status and plan show it, and the time that it gives an act."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control import sight_facts
from specctl.control.sight_wire import as_wire
from specctl.fleet.types import Limits
from specctl.rollout import plan
from specctl.rollout.facts import CurrentRelease, ServerFacts
from specctl.rollout.guarded import Guard, hard_limit_s
from specctl.rollout.observation import UnitState
from tests import fakes

WIRE = {
    "phase": "watching",
    "act": "deploy",
    "who": "ann@desk",
    "token": 3,
    "aim": {"id": "7", "algo": "ddtree"},
    "back": {"id": "6", "algo": "dflash"},
    "hard_left_s": 900.0,
    "confirm_left_s": 61.0,
    "reason": None,
}
ARMED = Guard(
    phase="watching",
    act="deploy",
    who="ann@desk",
    token=3,
    aim=("7", "ddtree"),
    back=("6", "dflash"),
    hard_left_s=900.0,
    confirm_left_s=61.0,
)
FACTS = ServerFacts(name="chat", current=CurrentRelease(id="7", algo="ddtree"), unit=UnitState(active="active"))


def test_it_is_read_as_the_host_says_it() -> None:
    """What the host answers comes back whole; without a phase there is no guard."""
    assert Guard.from_wire(WIRE) == ARMED
    others: tuple[object, ...] = (None, {}, [], {"phase": 3})
    assert [Guard.from_wire(value) for value in others] == [None] * 4


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (ARMED, "guard armed: back to release 6, dflash, in 1:01 unless the deploy of ann@desk is confirmed"),
        (
            replace(ARMED, back=None, confirm_left_s=None),
            "guard armed: stops the server, in 15:00 unless the deploy of ann@desk is confirmed",
        ),
        (
            replace(ARMED, phase="gating", reason="ann@desk was gone"),
            "the guard acts (gating): back to release 6, dflash; ann@desk was gone",
        ),
    ],
)
def test_its_words(guard: Guard, said: str) -> None:
    """It says what it goes back to and when; while it acts, why."""
    assert guard.words() == said


def test_status_shows_it_first() -> None:
    """An armed guard is the first thing that a row's note says, and a field of its JSON."""
    facts = replace(FACTS, guard=ARMED, warnings=("a warning",))
    row = as_wire(replace(sight_facts.standing(fakes.HOST, fakes.SERVER, facts, None), desired=None))
    assert str(row["note"]).startswith(f"{ARMED.words()}; ")
    assert str(row["note"]).endswith("; a warning")
    assert row["guard"] == {
        "phase": "watching",
        "act": "deploy",
        "who": "ann@desk",
        "aim": ["7", "ddtree"],
        "back": ["6", "dflash"],
        "left_s": 61.0,
        "reason": None,
    }


@pytest.mark.parametrize("guard", [None, ARMED])
def test_what_was_not_confirmed_is_never_nothing_to_do(guard: Guard | None) -> None:
    """The same release and algo again is a plan with nothing to do, unless a guard still waits for its confirm."""
    wish = plan.Wish(
        host="gpu1", server="chat", algo="ddtree", release="7", launch={}, knobs={}, unit_name="u", unit_text=""
    )
    made = plan.make(wish, replace(FACTS, guard=guard), files=(), writes=False)
    assert (made.nothing is None, made.warnings) == ((False, ()) if guard is None else (True, (ARMED.words(),)))


def test_the_hard_limit_is_longer_than_any_act() -> None:
    """It covers drain, stop, load and smoke as the limits allow them, and 2.5 times the last load."""
    limits = Limits(load_s=600, drain_s=100, stop_s=50, smoke_s=60, guard_s=300)
    assert hard_limit_s(limits, []) == 200 + 660
    assert hard_limit_s(limits, [100.0, 400.0]) == 200 + 1000
    assert hard_limit_s(replace(limits, guard_s=1200), [400.0]) == 200 + 1200
