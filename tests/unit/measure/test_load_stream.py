"""Lines of a streamed answer, whatever an engine sends."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.measure.load_stream import DONE, End, Fault, Tokens, event, refusal
from tests.examples import HOSTILE


def line(count: int, text: str = "x", *, finish: object = None, compact: bool = True, **meta: object) -> bytes:
    """Return an event as SGLang writes it (compact), or as the lab does."""
    body = {
        "text": text,
        "output_ids": [1] * count,
        "meta_info": {"finish_reason": finish, "completion_tokens": count, **meta},
    }
    separators = (",", ":") if compact else (", ", ": ")
    return b"data: " + json.dumps(body, separators=separators).encode()


@pytest.mark.parametrize("compact", [True, False])
def test_count_is_read_from_an_answer_that_goes_on(*, compact: bool) -> None:
    """The engine's own count is read, in either manner of writing JSON."""
    assert event(line(17, compact=compact)) == Tokens(count=17)


@given(text=st.text(max_size=60), count=st.integers(0, 10**6))
@settings(max_examples=HOSTILE, deadline=None)
def test_generated_text_is_never_taken_for_a_field(text: str, count: int) -> None:
    """Whatever text a model writes, also one that looks like our fields, the count is the engine's."""
    trap = '"completion_tokens":99,"finish_reason":null' + text
    body = {"meta_info": {"finish_reason": None, "completion_tokens": count}, "text": trap}
    assert event(b"data: " + json.dumps(body, separators=(",", ":")).encode()) == Tokens(count=count)


def test_long_answers_are_read_from_their_end() -> None:
    """However long the answer, and wherever its meta_info stands, the count is found."""
    assert event(line(900, text="x" * 50_000)) == Tokens(count=900)
    body = {"meta_info": {"finish_reason": None, "completion_tokens": 7}, "text": "x" * 50_000}
    assert event(b"data: " + json.dumps(body).encode()) == Tokens(count=7)


def test_end_tells_the_whole() -> None:
    """The last event says how it ended, all tokens, the prompt's, what came from the cache, and the verify steps."""
    finish = {"type": "length", "length": 8}
    found = event(line(8, finish=finish, prompt_tokens=12, cached_tokens=3, spec_verify_ct=4))
    assert found == End(reason="length", count=8, prompt_tokens=12, cached_tokens=3, verify_steps=4)


def test_what_the_end_does_not_tell_is_unknown() -> None:
    """Without speculation there are no verify steps: None, not zero."""
    found = event(line(8, finish={"type": "stop", "matched": 2}))
    assert found == End(reason="stop", count=8)


def test_abort_keeps_the_engines_words() -> None:
    """An answer that the engine ended says why."""
    found = event(line(3, finish={"type": "abort", "message": "out of memory"}))
    assert isinstance(found, End)
    assert (found.reason, found.words) == ("abort", "out of memory")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "the scheduler died"}}', "the scheduler died"),
        (b'{"error": "no"}', "no"),
        (b"[1, 2]", "an event that is no object"),
        (b"{half", "no JSON in an event: {half"),
    ],
)
def test_faults_are_told(body: bytes, words: str) -> None:
    """An error event, and what is no event, are faults with words."""
    assert event(b"data: " + body) == Fault(words=words)


@pytest.mark.parametrize("other", [b"", b": ping", b"event: message", b"id: 4"])
def test_other_lines_say_nothing(other: bytes) -> None:
    """Blank lines, comments and other fields of the protocol are passed over."""
    assert event(other) is None


def test_done_is_the_end_of_the_stream() -> None:
    """The closing mark is no event of the answer."""
    assert event(b"data: [DONE]") is DONE


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "too long"}}', "too long"),
        (b'{"object": "error", "message": "The request queue is full."}', "The request queue is full."),
        (b'{"error": "unknown field"}', "unknown field"),
        (b"<html>\n", "<html>\\n"),
        (b"[]", "[]"),
    ],
)
def test_refusals_are_told_by_their_message(body: bytes, words: str) -> None:
    """Of an answer that is no stream its message is told, in any of SGLang's three shapes."""
    assert refusal(body) == words


@given(content=st.binary(max_size=200))
@settings(max_examples=HOSTILE, deadline=None)
def test_any_bytes_are_taken(content: bytes) -> None:
    """No bytes raise, and what an engine wrote is fit for one line of a terminal."""
    found = event(b"data:" + content)
    assert not isinstance(found, Fault) or found.words.isprintable()
