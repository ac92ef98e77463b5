"""docs/json.md says of agents what the code prints: the same fields, and null where null can come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from specctl.ops.agent import Answer
from specctl.rollout.agent_plan import AgentPlan, AgentRow
from specctl.rollout.wheel_tags import Interpreter
from specctl_agent.told import told_agent
from tests.unit.agent.pictured import BLIND, FULL
from tests.unit.test_docs_json import ERROR, hold

PYTHON = Interpreter(path="/usr/bin/python3", version=(3, 11), machine="x86_64", glibc=(2, 36))
PLAN = AgentPlan(
    host="gpu1", version="1", before=None, python=PYTHON, wheels={"w": "s"}, units={"u": "t"}, config={"format": 1}
)
ROW = AgentRow(host="gpu1")
ANSWER = Answer(host="gpu1", server="chat", result={"said": "held", "saved": True})


def pairs() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield each documented object as it is with nothing known and with everything."""
    full = replace(
        ROW, version="1", python="/usr/bin/python3", state="active", told=told_agent(FULL, FULL.servers), error=ERROR
    )
    yield "Agent", ROW.as_wire(), full.as_wire()
    blind, seen = told_agent(BLIND, BLIND.servers), told_agent(FULL, FULL.servers)
    yield "AgentSelf", {**blind, "gpu_trouble": None}, {**seen, "gpu_trouble": "what"}
    yield "AgentServer", _server(blind), _server(seen)
    yield "AgentPlan", PLAN.as_wire(), replace(PLAN, before="0", nothing="why").as_wire()
    yield "Answer", ANSWER.as_wire(), replace(ANSWER, error=ERROR).as_wire()


def _server(told: Mapping[str, object]) -> Mapping[str, object]:
    servers = told["servers"]
    assert isinstance(servers, list)
    (found,) = servers
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("heading", "bare", "full"), list(pairs()), ids=[name for name, _, _ in pairs()])
def test_fields_are_documented(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """The table has each field that is printed, and says null of those, and only those, that may be null."""
    hold(heading, bare, full)
