"""What was put into a server last, whoever did it and however often the agent is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control.mode import Mode
from specctl.rollout.agent_moves import WHO
from specctl_agent.places import Place, Told
from specctl_agent.put_there import PutThere
from tests.agentworld import DDTREE, DFLASH, NONE, note_of, server_of

PLACE = Place(
    folder=Path("/servers/lab"), note=note_of(server_of(1234), Path("/servers"), "1"), release="1", algo="ddtree"
)


def told(mode: Mode, *, who: str = "ann@desk", invocation: str = "i1", at: str = "12:00") -> Place:
    """Return the place with a live change on record."""
    return replace(PLACE, told=Told(mode=mode, invocation=invocation, who=who, at=at))


def test_a_start_puts_there_what_is_deployed() -> None:
    """Without any change since, what runs is what a start runs."""
    assert PutThere(invocation="i1").mode(PLACE) == DDTREE


def test_a_persons_change_is_taken_up_and_ends_with_its_start() -> None:
    """What a person told the running engine is what was put there, until another start of the server runs."""
    known = PutThere(invocation="i1")
    assert known.mode(told(DFLASH)) == DFLASH
    known.invocation = "i2"
    assert known.mode(told(DFLASH)) == DDTREE


def test_before_the_start_is_known_nothing_is() -> None:
    """An agent that has just begun does not know whether the start that was told still runs."""
    assert PutThere().mode(told(DFLASH)) is None


def test_the_newest_of_both_counts() -> None:
    """The agent's own change replaces a person's before it, and is replaced by one after it; its own record changes nothing."""
    known = PutThere(invocation="i1")
    known.move(NONE, told(DFLASH))
    assert known.mode(told(DFLASH)) == NONE
    assert known.mode(told(NONE, who=WHO, at="12:01")) == NONE
    assert known.mode(told(DFLASH, at="12:02")) == DFLASH


def test_what_the_agent_forgot_its_record_remembers() -> None:
    """An agent whose own memory was lost takes its change from the record, as long as the start lasts that it was made to."""
    known = PutThere(invocation="i1")
    assert known.mode(told(DFLASH, who=WHO)) == DFLASH
    known.move(NONE, told(DFLASH, who=WHO))
    assert known.mode(told(DFLASH, who=WHO)) == NONE
    known.invocation = "i2"
    assert known.mode(told(DFLASH, who=WHO, invocation="i2")) == DFLASH


@pytest.mark.parametrize("invocation", [None, "i1"])
def test_the_agents_own_change_ends_with_its_start(invocation: str | None) -> None:
    """Another release, another algo or another start: what is deployed runs."""
    known = PutThere(invocation=invocation)
    known.move(DFLASH, PLACE)
    assert known.mode(PLACE) == DFLASH
    assert known.mode(replace(PLACE, algo="none")) == NONE
    known.invocation = "i2"
    assert known.mode(PLACE) == DDTREE


def test_a_restart_of_the_agent_forgets_nothing() -> None:
    """What was saved is taken up: the change, the start that it was made to, and whose it replaced."""
    before = PutThere(invocation="i1")
    before.move(NONE, told(DFLASH))
    again = PutThere(invocation="i1")
    again.take_up(before.plain() or {})
    assert again == before
    assert again.mode(told(DFLASH)) == NONE
    assert PutThere().plain() is None


@pytest.mark.parametrize("fields", [{}, {"mode": "nope"}, {"mode": "ddtree:tree_budget=x"}, {"mode": None}])
def test_what_cannot_be_meant_is_left_out(fields: dict[str, object]) -> None:
    """A saved change that is none leaves what is deployed."""
    known = PutThere(invocation="i1")
    known.take_up(fields)
    assert known.mode(PLACE) == DDTREE
