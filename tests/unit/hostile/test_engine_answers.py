"""Whatever an engine answers becomes a value: no traceback, no hang, and what specctl prints of it stays JSON and one line."""

from __future__ import annotations

import json
import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specctl.control import sight_engine
from specctl.engines._sglang_log import GRAMMAR
from specctl.ops.contact import Contact
from specctl.ops.engine_http import EngineClient, NoAnswerError
from specctl.rollout import gate as folds
from specctl.rollout import proof, smoke, story
from specctl.rollout.gate_types import GateSpec
from specctl.rollout.observation import Observation
from specctl.ui import events
from tests.examples import HOSTILE
from tests.fakes import HOST, PROFILE, SERVER
from tests.unit.hostile.peers import Peer, http
from tests.unit.hostile.strategies import BODIES, JSON, NUMBERS, TEXTS, objects

# Control, format and surrogate: what moves a cursor, turns the writing round, or cannot be written.
STEERING = ("Cc", "Cf", "Cs")
ROW = objects("num_running_reqs", "num_waiting_reqs", "gen_throughput", "timestamp", "speculative")
LOADS = st.fixed_dictionaries(
    {
        "loads": st.lists(ROW, max_size=3) | JSON,
        "timestamp": JSON | st.sampled_from(["0001-01-01", "9999-12-31T23:59:59"]),
    }
)
INFO = objects("spec_verify_ct", "completion_tokens", "server_args", "internal_states", "speculative_algorithm")
UNIT = objects("active", "sub", "invocation", "main_pid", "restarts", "result", "exit_status")
LOOK = objects(
    "at_s", "port", "ready", "lines", "processes", "rss_bytes", "read_bytes", "cpu_s", "gpu_bytes", "journal_lost"
)

pytestmark = pytest.mark.slow  # hundreds of examples of everything that an engine or a host may say
SPEC = GateSpec(grammar=GRAMMAR, started_at_s=0.0, load_s=60.0, stall_s=20.0)
LINES = st.lists(TEXTS | st.sampled_from([text.pattern.pattern for text in GRAMMAR.texts]), max_size=5)


def client(answer: bytes) -> EngineClient:
    """Return a client of an engine that answers so."""
    return EngineClient(Contact(host=HOST, transport=Peer(answer=answer), session=None), SERVER)  # type: ignore[arg-type]  # HTTP alone


@settings(max_examples=HOSTILE, deadline=None)
@given(BODIES | st.builds(lambda value: json.dumps(value).encode(), LOADS | JSON), st.integers(100, 599))
@example(b"[" * 3000, 200)
def test_bodies(body: bytes, status: int) -> None:
    """A body that is no JSON, or too deep for a parser, is an answer without fields."""
    asked = client(http(body, status))
    reply = asked.get("/v1/loads", timeout_s=5.0)
    assert reply.status in (status, None)
    assert isinstance(reply.fields, dict)
    try:
        count = asked.running_requests()
    except NoAnswerError:
        return
    assert count is None or count >= 0


@settings(max_examples=HOSTILE, deadline=None)
@given(BODIES)
@example(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc")
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nabc")
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nabc")
@example(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
def test_bytes_in_place_of_http(content: bytes) -> None:
    """Bytes that are no HTTP are told as such within the limit."""
    begin = time.monotonic()
    reply = client(content).get("/server_info", timeout_s=5.0)
    assert time.monotonic() - begin < 10.0
    assert reply.status is None or 100 <= reply.status <= 999
    assert reply.status is not None or (reply.failure and reply.failure.isprintable())


@settings(max_examples=HOSTILE, deadline=None)
@given(LOADS | JSON, LOADS | JSON)
def test_loads(body: object, other: object) -> None:
    """Any /v1/loads is figures that are finite and not negative, or unknown."""
    earlier, later = sight_engine.seen(1.0, 200, other), sight_engine.seen(9.0, 200, body)
    for before in (None, earlier):
        found = sight_engine.figures(later, before)
        told = (found.running, found.waiting, found.tokens_per_s, found.accept_length, found.kv_ratio)
        figures = [figure for each in told if each is not None for figure in (each.value, each.age_s)]
        json.dumps(figures, allow_nan=False)
        assert all(figure is None or figure >= 0 for figure in figures)


@settings(max_examples=HOSTILE, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers() | st.none(), JSON | st.fixed_dictionaries({"text": JSON, "meta_info": INFO})),
        max_size=3,
    ),
    LINES,
    INFO,
)
def test_generations_and_server_info(
    answers: list[tuple[int | None, object]], lines: list[str], info: dict[str, object]
) -> None:
    """Any answers to the smoke and any /server_info are judged; proven only by an engine that generated."""
    result = smoke.SmokeResult()
    for status, body in answers:
        result = smoke.fold(
            result, smoke.SmokeRequest(prompt="a", max_new_tokens=8), status=status, body=body, took_s=0.1
        )
    for algo in PROFILE.algos.values():
        said = proof.judge(algo, {"block_size": 8}, lines, lines, result, info)
        assert not isinstance(said, proof.Proven) or result.completion_tokens > 0


@settings(max_examples=HOSTILE, deadline=None)
@given(st.lists(st.tuples(LOOK, UNIT, LINES), max_size=5))
@example([({}, {}, []), ({}, {}, ["soft\xadhyphen"]), ({"at_s": 60}, {}, [])])
def test_looks(seen: list[tuple[dict[str, object], object, list[str]]]) -> None:
    """Any looks of a watcher fold to a verdict whose event is JSON and whose story is printable."""
    state = folds.begin(SPEC)
    for look, unit, lines in seen:
        state = folds.advance(SPEC, state, Observation.from_wire({"lines": lines, **look, "unit": unit}))
        json.dumps(events.gate_event("gpu1", state), allow_nan=False)
    for _, text in story.story(state, 12):
        assert not any(unicodedata.category(char) in STEERING for char in text), repr(text)


@settings(max_examples=HOSTILE, deadline=None)
@given(NUMBERS)
def test_numbers(value: float) -> None:
    """A number without a size is not known, in place of an error."""
    look = Observation.from_wire({"at_s": value, "cpu_s": value, "rss_bytes": value})
    assert look.at_s == look.at_s
