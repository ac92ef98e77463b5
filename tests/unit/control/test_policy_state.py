"""The policy's memory: through JSON and back, whole or not at all."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control import policy
from specctl.control.policy_state import State, from_plain, to_plain
from specctl.control.policy_types import Now
from tests.unit.control.policy_worlds import GOOD, LIMITS, START, STATES, WIDE, later


@settings(max_examples=100, deadline=None)
@given(state=STATES)
def test_a_state_survives_json(state: State) -> None:
    """What is written after a tick is what the agent reads after a restart, and it goes on in the same way."""
    again = from_plain(json.loads(json.dumps(to_plain(state))))
    assert again == state


@settings(max_examples=50, deadline=None)
@given(loads=st.lists(st.floats(0.0, 64.0), min_size=1, max_size=30), cut=st.integers(0, 29))
def test_a_restart_of_the_agent_changes_no_decision(loads: list[float], cut: int) -> None:
    """An agent that was started anew in between decides as one that ran on."""
    straight = broken = replace(State.fresh(WIDE, dwell_s=1e9), at=START)
    now: Now = START
    for place, load in enumerate(loads):
        now = later(now, 1.0)
        view = replace(GOOD, concurrency=load)
        straight = policy.advance(straight, view, LIMITS, now)
        if place == cut:
            broken = from_plain(to_plain(broken))
        broken = policy.advance(broken, view, LIMITS, now)
        assert policy.decide(view, broken, LIMITS, now) == policy.decide(view, straight, LIMITS, now)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"format": 2}, "format 2"),
        ({"mode": "dflush"}, "no algo 'dflush'"),
        ({"work": {"none": -1.0}}, "work.none"),
        ({"gains": 7}, "gains is no object"),
        ({"dwell_s": float("nan")}, "dwell_s"),
        ({"spent": [[1, 2]]}, "spent[0]"),
        ({"trial": {"old": "none"}}, "trial.seconds"),
        ({"frozen": {"left_s": 1.0}}, "frozen.reason"),
        ({"at": {"mono_s": 1.0, "wall_s": 1.0}}, "at.boot"),
    ],
)
def test_a_state_that_cannot_be_meant_is_refused_whole(change: dict[str, object], what: str) -> None:
    """A corrupt or newer state is never half taken: the error says where it is wrong."""
    with pytest.raises(ValueError, match=re.escape(what)):
        from_plain({**to_plain(State.fresh(WIDE)), **change})
