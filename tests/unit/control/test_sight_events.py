"""What is told as having happened between two sights: each change once, and nothing where only time went by."""

from __future__ import annotations

from dataclasses import replace

from specctl.control.sight import AgentSight, Decided, LastAct, Sight
from specctl.control.sight_events import Event, Kind, between, decided
from tests import sights


def told(before: Sight | None, after: Sight) -> list[tuple[Kind, str]]:
    """Return kind and words of what happened."""
    return [(event.kind, event.text) for event in between(before, after, 5.0)]


def test_time_alone_is_nothing() -> None:
    """A sight that only grew older tells nothing, and neither does the first one."""
    assert told(sights.FULL, sights.FULL.later(30.0)) == []
    assert told(None, sights.FULL) == []


def test_a_lost_host() -> None:
    """A change of state is told with its reason."""
    gone = replace(sights.READY, state="unreachable", reason="connection timed out")
    assert told(sights.READY, gone) == [(Kind.STATE, "ready → unreachable (connection timed out)")]


def test_a_decision_and_what_came_of_it() -> None:
    """A new decision, an act on record and another mode are each told, in that server's name."""
    agent = AgentSight(conduct="act", decision=Decided(text="switch dflash", reason="gain", at="later"))
    after = replace(
        sights.READY, live=sights.CHAIN, agent=agent, last=LastAct(act="switch", at="now", who="agent", result="done")
    )
    assert told(sights.READY, after) == [
        (Kind.STATE, "runs dflash:block_size=8, before ddtree:topk_cap=1,tree_budget=7"),
        (Kind.DECISION, "switch dflash: gain"),
        (Kind.ACT, "switch by agent: done"),
    ]
    assert next(iter(between(sights.READY, after, 5.0))).host == "ct200"


def test_orders_of_people() -> None:
    """A pin, a hold and their ends are told."""
    held = replace(sights.READY, agent=replace(sights.READY.agent or AgentSight(), held="firmware"))
    assert told(sights.READY, held) == [(Kind.AGENT, "held: firmware")]
    assert told(held, sights.READY) == [(Kind.AGENT, "no longer held")]


def test_heat_and_drift() -> None:
    """A GPU that is slowed, one that is so no longer, and drift are told once."""
    hot = replace(sights.READY, gpus=sights.gpus(8, 212.0, slowed=(3,)), drift=("the unit file is missing",))
    assert told(sights.READY, hot) == [
        (Kind.DRIFT, "the unit file is missing"),
        (Kind.GPU, "GPU 3 is slowed (hw_thermal)"),
    ]
    assert told(hot, replace(hot, gpus=sights.gpus(8, 212.0))) == [(Kind.GPU, "GPU 3 is slowed no longer")]
    assert told(hot, hot.later(5.0)) == []


def test_an_agent_that_falls_silent() -> None:
    """An agent that answers no more is told with the reason."""
    silent = replace(sights.READY, agent=None, agent_trouble="the agent does not run on this host")
    assert told(sights.READY, silent) == [(Kind.AGENT, "no answer: the agent does not run on this host")]


def test_a_journals_entry() -> None:
    """An entry of the agent's journal is an event of its own moment; one without a moment is none."""
    entry = {"at": "1970-01-01T00:01:00+00:00", "decision": "hold", "reason": "too early"}
    assert decided(entry, "h", "s") == Event(at=60.0, host="h", server="s", kind=Kind.DECISION, text="hold: too early")
    assert decided({"decision": "hold"}, "h", "s") is None
