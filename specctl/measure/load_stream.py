"""What one line of a streamed /generate answer says, in SGLang's dialect of server-sent events; any bytes are taken.

An event repeats the whole answer so far, so a long answer's events are long: of all but the first and the last one only the token
count is read, by one search. A quote inside a JSON string is written with a backslash before it, so that text which an engine
generates can never be taken for the field that is searched for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

_PREFIX = b"data:"
_DONE = b"[DONE]"
_GOES_ON = re.compile(rb'"finish_reason": ?null')
_COUNT = re.compile(rb'"completion_tokens": ?(\d{1,9})[,}]')
_MOST_WORDS = 200
# The meta_info stands at an event's end and has some 600 bytes; where it is longer, the event is read whole.
TAIL_BYTES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """An answer that goes on; `count`: tokens so far by the engine's own count, None where it does not say."""

    count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An answer's last event, with what the engine says of the whole; None where it does not say."""

    reason: str
    count: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    verify_steps: int | None = None
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The engine gave up the answer, or sent what is no event."""

    words: str


class Done:
    """The mark after which nothing comes."""


DONE = Done()
Event = Tokens | End | Fault | Done


def event(line: bytes) -> Event | None:
    """Return what a line says; None of one that says nothing (blank, a comment, another field)."""
    if not line.startswith(_PREFIX):
        return None
    body = line[len(_PREFIX) :].strip()
    if body == _DONE:
        return DONE
    tail = body[-TAIL_BYTES:]
    if _GOES_ON.search(tail) is not None and (found := _COUNT.findall(tail)):
        return Tokens(count=int(found[-1]))
    return _parsed(body)


def _parsed(body: bytes) -> Event:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return Fault(words=f"no JSON in an event: {printable(body.decode('utf-8', 'replace'))}")
    if not isinstance(told, Mapping):
        return Fault(words="an event that is no object")
    if (error := told.get("error")) is not None:
        words = error.get("message") if isinstance(error, Mapping) else error
        return Fault(words=printable(str(words)))
    meta = told.get("meta_info")
    meta = meta if isinstance(meta, Mapping) else {}
    finish = meta.get("finish_reason")
    if not isinstance(finish, Mapping):
        return Tokens(count=_whole(meta, "completion_tokens"))
    return End(
        reason=printable(str(finish.get("type"))),
        count=_whole(meta, "completion_tokens"),
        prompt_tokens=_whole(meta, "prompt_tokens"),
        cached_tokens=_whole(meta, "cached_tokens"),
        verify_steps=_whole(meta, "spec_verify_ct"),
        words=printable(str(finish.get("message") or "")),
    )


def refusal(body: bytes) -> str:
    """Return the words of an answer that is no stream: its message where it is SGLang's JSON, else its beginning."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    fields = told if isinstance(told, Mapping) else {}
    inner = fields.get("error", fields)
    words = inner.get("message") if isinstance(inner, Mapping) else inner
    return printable(words if isinstance(words, str) and words else body.decode("utf-8", "replace"))


def _whole(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


def printable(text: str) -> str:
    """Return the beginning of what an engine wrote, fit for a terminal and for one line."""
    return text[:_MOST_WORDS].encode("unicode_escape").decode("ascii")
