"""Whatever a host's session answers becomes values or one error of ours: no traceback, no hang, no thread that dies."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specctl.adapters.session import HostSession
from specctl.control import sight_facts
from specctl.control.sight_wire import as_wire
from specctl.errors import SpecctlError
from specctl.rollout.facts import HostFacts
from specctl.rollout.guarded import Guard
from specctl.rollout.record import past_load_rows
from tests import fakes
from tests.examples import HOSTILE
from tests.unit.hostile.peers import Peer
from tests.unit.hostile.strategies import BODIES, JSON, objects

ERROR = objects("kind", "message", "hint", "output", "status")
REPLY = st.fixed_dictionaries(
    {"id": st.sampled_from([0, 1, 2]) | JSON}, optional={"result": JSON, "error": ERROR | JSON, "event": JSON}
)

pytestmark = pytest.mark.slow  # hundreds of examples of everything that an engine or a host may say
LINE = BODIES | REPLY.map(lambda reply: json.dumps(reply).encode())
HELLO = b'{"id": 1, "result": {}}\n'
LIMIT_S = 10.0


def answered(replies: list[bytes]) -> object:
    """Open a session on a host that says so, ask for facts, and return the answer or our error."""
    session: HostSession | None = None
    began = time.monotonic()
    try:
        session = HostSession(Peer(replies=replies))
        return session.call("facts", {}, timeout_s=2.0)
    except SpecctlError as error:
        return error
    finally:
        if session is not None:
            session.close()
        assert time.monotonic() - began < LIMIT_S


@settings(max_examples=HOSTILE, deadline=None)
@given(st.lists(LINE, min_size=1, max_size=4))
@example([b"[" * 3000 + b"\n", HELLO])
@example([b'{"id": 1, "event": {}, "result": {}}'])
def test_first_words(lines: list[bytes]) -> None:
    """A host that greets with anything is refused in words, or taken for what it says."""
    found = answered([b"\n".join(lines) + b"\n", b"\n".join(lines) + b"\n"])
    assert isinstance(found, (dict, SpecctlError))
    assert not isinstance(found, SpecctlError) or str(found)


@settings(max_examples=HOSTILE, deadline=None)
@given(st.lists(LINE, max_size=3), st.fixed_dictionaries({"id": st.just(2)}, optional={"result": JSON, "error": ERROR}))
@example([b"[" * 3000], {"id": 2, "result": {}})
def test_answers_to_an_op(lines: list[bytes], reply: dict[str, object]) -> None:
    """What stands before an answer hides nothing of it, and an answer of any shape is a result or an error."""
    said = b"\n".join([*lines, json.dumps(reply).encode()]) + b"\n"
    found = answered([b"", HELLO, said])
    assert isinstance(found, (dict, SpecctlError))


UNIT = objects("active", "sub", "invocation", "main_pid", "restarts", "loaded")
GUARD = objects("phase", "act", "who", "token", "aim", "back", "hard_left_s", "confirm_left_s", "reason")
LEASE = objects("owner", "reason", "token", "age_s", "remaining_s", "manual")
RECORD = objects("act", "result", "serving", "load_s", "phases", "proof", "who", "at", "release", "algo", "cause")
CURRENT = objects("id", "algo", "text", "manifest")
SERVER = st.builds(
    lambda known, unit, guard, lease, records, current: {
        **known,
        "name": "chat",
        "unit": unit,
        "guard": guard,
        "lease": lease,
        "records": records,
        "current": current,
    },
    objects(
        "drift",
        "warnings",
        "releases",
        "port",
        "port_owner",
        "packages",
        "python",
        "target",
        "draft",
        "own_pids",
        "target_bytes",
    ),
    UNIT | JSON,
    GUARD | JSON,
    LEASE | JSON,
    st.lists(RECORD, max_size=3) | JSON,
    CURRENT | JSON,
)
ANSWER = st.builds(
    lambda known, servers: {**known, "servers": servers},
    objects(
        "at_s",
        "wall_s",
        "warnings",
        "gpus",
        "driver",
        "machine",
        "disk",
        "memory",
        "os",
        "kernel",
        "clock",
        "limits",
        "topology",
    ),
    st.lists(SERVER, max_size=2) | JSON,
)


@settings(max_examples=HOSTILE, deadline=None)
@given(ANSWER, st.floats(0, 2e9))
def test_facts(answer: dict[str, object], now_s: float) -> None:
    """Any facts are values; what is printed of them with --json is JSON."""
    facts = HostFacts.from_wire("gpu1", answer, now_s)
    json.dumps(facts.as_wire(), allow_nan=False)
    for server in facts.servers.values():
        json.dumps(server.as_wire(), allow_nan=False)
        json.dumps(as_wire(sight_facts.standing(fakes.HOST, fakes.SERVER, server, 1e9)), allow_nan=False)
        past_load_rows(server.records, "dflash")
        server.past_loads("dflash")


@settings(max_examples=HOSTILE, deadline=None)
@given(GUARD | JSON)
def test_guards(value: object) -> None:
    """Any word on a guard is a guard that can be told in one line, or none."""
    guard = Guard.from_wire(value)
    if guard is not None:
        assert guard.words()
        json.dumps(guard.as_wire(), allow_nan=False)
