"""Thresholds with and without hysteresis, fixed schedules, and how they are let loose on a series or a server."""

from __future__ import annotations

import pytest

from specctl.control.objective import Objective
from specctl.control.replay import choosers
from specctl.control.replay.choosers import Planned, Threshold
from specctl.control.replay.load import Series
from specctl.control.replay.outage import LIVE, Outage
from specctl.control.replay.queueing import Server
from specctl.control.replay.schedule import Move, Schedule
from specctl.control.replay.worth import Worth
from tests.unit.control.replay.loads import CHAIN, NONE, SERVICE, TREE, requests

VALUES = Worth(SERVICE, Objective())


def test_a_bare_threshold_goes_where_it_is_best_at_once() -> None:
    """Each level has its mode, and an idle server stays what it is."""
    bare = Threshold(worth=VALUES)
    assert [bare.choose(0.0, level, CHAIN) for level in (0, 1, 4, 8)] == [None, TREE, None, NONE]


def test_hysteresis_waits_and_wants_a_margin() -> None:
    """The clock runs only while the margin is there, and begins anew when it was not."""
    slow = Threshold(worth=VALUES, hold_s=10.0, margin=0.1)
    assert slow.choose(0.0, 1, CHAIN) is None
    assert slow.choose(9.0, 1, CHAIN) is None
    assert slow.choose(9.5, 4, CHAIN) is None
    assert slow.choose(10.0, 1, CHAIN) is None
    assert slow.choose(20.0, 1, CHAIN) == TREE
    assert Threshold(worth=VALUES, margin=1.0).choose(0.0, 1, CHAIN) is None


def test_a_plan_is_followed() -> None:
    """Each move comes with its step; one that was missed is made up for, and the last of several counts."""
    plan = Planned(Schedule(start=NONE, moves=(Move(step=2, mode=TREE), Move(step=3, mode=CHAIN))), 1.0)
    assert [plan.choose(now_s, 1, NONE) for now_s in (0.0, 1.0, 3.5, 4.0)] == [None, None, CHAIN, None]


@pytest.mark.parametrize(
    ("away_s", "steps"),
    [(0.0, [0, 1, 2, 3]), (0.1, [0, 1, 2, 3]), (1.0, [0, 1, 2, 3]), (1.5, [0, 3]), (2.0, [0, 3]), (4.0, [0])],
)
def test_nothing_is_decided_while_a_switch_is_under_way(away_s: float, steps: list[int]) -> None:
    """A chooser that always wants away switches as often as switches fit, and at steps."""
    series = Series(step_s=1.0, levels=[1, 8, 1, 8])
    found = choosers.drive(series, Threshold(worth=VALUES), NONE, away_s)
    assert [move.step for move in found.moves] == steps


def test_a_server_is_driven_to_its_end() -> None:
    """Decisions are taken until the trace ends; what is left then is served, and the tokens until then are told."""
    load = requests((0.0, 0, 100), (5.0, 0, 4000), span_s=10.0)
    server = Server(SERVICE, load, NONE)
    served = choosers.drive_server(server, Threshold(worth=VALUES), step_s=1.0, span_s=10.0, outage=LIVE)
    assert server.idle
    assert (server.mode, server.switches) == (TREE, 1)
    assert 100 < served < 4100


def test_a_static_server_is_left_alone() -> None:
    """Without a chooser nothing is switched, and all is served."""
    load = requests((0.0, 0, 100), span_s=10.0)
    server = Server(SERVICE, load, NONE)
    served = choosers.drive_server(server, None, step_s=1.0, span_s=10.0, outage=Outage(seconds=9.0, drains=True))
    assert (served, server.switches, server.mode) == (100, 0, NONE)
