"""The control socket's lines: what one side writes the other reads, and nothing hostile gets through."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control import wire
from specctl.control.mode import mode
from specctl.errors import SpecctlError, UnsupportedError, UsageError
from specctl.fleet.types import AgentMode

REQUESTS = (
    wire.Status(),
    wire.Status(server="k26"),
    wire.Snapshot(),
    wire.Why(limit=3),
    wire.History(points=600),
    wire.Pin(who="ops@here", mode=mode("ddtree", {"tree_budget": 16}), for_s=21_600.0, reason="a demo"),
    wire.Unpin(who="ops@here"),
    wire.Hold(who="ops@here", reason="firmware"),
    wire.Resume(who="ops@here"),
    wire.SetConduct(who="ops@here", conduct=AgentMode.ACT),
    wire.SetConduct(who="ops@here", conduct=None),
)


def changed(request: wire.Request, **fields: object) -> bytes:
    """Return a request's line with some fields in place of its own."""
    return json.dumps({**json.loads(wire.encode(request)), **fields}).encode()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: f"{request.op}-{request.server}")
def test_every_request_survives_the_wire(request_: wire.Request) -> None:
    """What is written as a line is read back as the same request."""
    line = wire.encode(request_)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert wire.decode(line) == request_


def test_every_kind_of_request_is_tried_here() -> None:
    """No request is left out of the round trip above."""
    assert {request.op for request in REQUESTS} == set(wire.KINDS)


def test_fields_of_a_newer_minor_version_are_left_alone() -> None:
    """A client that is newer by a minor version is served; what we do not know we ignore."""
    assert wire.decode(changed(wire.Why(limit=2), v="1.9", colour="green")) == wire.Why(limit=2)
    assert wire.result_of(b'{"v":"1.9","result":{"a":1},"more":[]}') == {"a": 1}


def test_another_major_version_is_refused_in_words() -> None:
    """Both sides say which versions meet, and what to do about it."""
    with pytest.raises(UnsupportedError, match="the request is of version 2, and this agent speaks version 1") as asked:
        wire.decode(changed(wire.Status(), v="2.0"))
    assert "upgrade" in str(asked.value.hint)
    with pytest.raises(UnsupportedError, match="reply is of version 3, and this specctl speaks version 1"):
        wire.result_of(b'{"v":"3.0","result":{}}')


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 20_000,
        b'{"v":"1.0"}',
        b'{"v":1,"op":"status"}',
        b'{"v":"1.0","op":"reboot"}',
        b'{"v":"1.0","op":"why","limit":0}',
        b'{"v":"1.0","op":"why","limit":true}',
        b'{"v":"1.0","op":"why","limit":1e9}',
        b'{"v":"1.0","op":"status","server":7}',
        b'{"v":"1.0","op":"hold","who":"me","reason":""}',
        b'{"v":"1.0","op":"hold","who":"me","reason":"a\\u001b[2Jb"}',
        b'{"v":"1.0","op":"hold","reason":"nobody"}',
        b'{"v":"1.0","op":"mode","who":"me","conduct":"destroy"}',
        b'{"v":"1.0","op":"pin","who":"me","mode":"warp","for_s":60,"reason":"x"}',
        b'{"v":"1.0","op":"pin","who":"me","mode":"none","for_s":NaN,"reason":"x"}',
        b'{"v":"1.0","op":"pin","who":"me","mode":"none","for_s":1e300,"reason":"x"}',
        b'{"v":"1.0","op":"status","server":"' + b"x" * wire.REQUEST_BYTES + b'"}',
    ],
)
def test_what_cannot_be_meant_is_refused(line: bytes) -> None:
    """Every line that is no request ends in one of two errors, which a reply can carry."""
    with pytest.raises((UsageError, UnsupportedError)) as error:
        wire.decode(line)
    refused = error.value
    assert isinstance(refused, (UsageError, UnsupportedError))
    with pytest.raises(type(refused)) as told:
        wire.result_of(wire.refusal(refused))
    assert (told.value.message, told.value.hint) == (refused.message[: wire.TEXT_CHARS], refused.hint)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(line: bytes) -> None:
    """Whatever a client sends, reading it ends in a request or an error of ours."""
    for read in (wire.decode, wire.result_of):
        try:
            read(line)
        except SpecctlError as error:
            assert isinstance(error, (UsageError, UnsupportedError))  # noqa: PT017  # either is fine, nothing else is


def test_an_answer_that_is_too_long_says_so() -> None:
    """A reply never exceeds its bound: it becomes a refusal."""
    line = wire.answer({"rows": ["x" * 1000] * 2000})
    assert len(line) < 1000
    with pytest.raises(UsageError, match="too long"):
        wire.result_of(line)
