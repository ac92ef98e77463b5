"""The control socket's end: requests become answers, mistakes become refusals, nothing becomes an exception."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control import wire
from specctl.errors import UnsupportedError, UsageError
from specctl_agent.control import ControlSocket


def echo(request: wire.Request) -> Mapping[str, object]:
    """Answer with what was asked; holds are refused."""
    if isinstance(request, wire.Hold):
        raise UsageError("held already", hint="resume it")
    return {"op": request.op}


def asked(content: bytes) -> bytes:
    """Return the reply to the first line of what was received."""
    spoken = ControlSocket(echo).answer(content)
    assert spoken is not None
    assert spoken.used == len(content.partition(b"\n")[0]) + 1
    assert not spoken.last
    return spoken.content


def test_a_request_is_answered() -> None:
    """The line is read, the question put, the answer written as one line."""
    assert wire.result_of(asked(wire.encode(wire.Status()) + b"more")) == {"op": "status"}


def test_half_a_line_is_waited_for() -> None:
    """Nothing is answered before the line is whole."""
    assert ControlSocket(echo).answer(wire.encode(wire.Status())[:-1]) is None


def test_refusals_reach_the_client_as_they_are() -> None:
    """What the agent refuses, and what it cannot read, comes back with its hint."""
    with pytest.raises(UsageError, match="held already") as held:
        wire.result_of(asked(wire.encode(wire.Hold(who="me", reason="because"))))
    assert held.value.hint == "resume it"
    with pytest.raises(UnsupportedError, match="version 9"):
        wire.result_of(asked(b'{"v":"9.0","op":"status"}\n'))
    with pytest.raises(UsageError, match="longer than"):
        wire.result_of(ControlSocket(echo).overlong())


@given(st.binary(max_size=200))
def test_hostile_lines_are_answered(line: bytes) -> None:
    """Whatever bytes make a line, there is one reply, in one line."""
    reply = asked(line.replace(b"\n", b"") + b"\n")
    assert reply.endswith(b"\n")
    assert reply.count(b"\n") == 1
