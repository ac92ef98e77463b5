"""Read the lines of a verify trace into records; whatever a line holds, the answer is a value (docs/verify-trace.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from specctl.doctor.replay_types import VERSION, End, Header, Malformed, Plain, Prefill, Record, Verified

MOST_BYTES = 1 << 20
"""Bytes of a line; a tree of 1,024 nodes takes 30 kB."""
MOST_NODES = 4096
MOST = 1 << 53
"""Numbers beyond this are no counts."""
RID_CHARACTERS = 200
WORD_CHARACTERS = 80


class _Wrong(ValueError):  # noqa: N818  # a reason, caught here
    """A field that is missing or no such thing."""


def read(line: str | bytes) -> Record | Malformed:
    """Read one line."""
    if len(line) > MOST_BYTES:
        return Malformed(reason=f"over {MOST_BYTES} bytes")
    try:
        fields = json.loads(line)
    except (
        ValueError,
        RecursionError,
    ):  # no JSON, no UTF-8, a number of thousands of digits, or deeper than anybody reads
        return Malformed(reason="no JSON")
    if not isinstance(fields, dict):
        return Malformed(reason="no JSON object")
    if fields.get("v") != VERSION or isinstance(fields["v"], bool):
        return Malformed(reason=f"version {str(fields.get('v'))[:WORD_CHARACTERS]}, expected {VERSION}")
    reader = READERS.get(fields["kind"]) if isinstance(fields.get("kind"), str) else None
    if reader is None:
        return Malformed(reason=f"unknown kind {str(fields.get('kind'))[:WORD_CHARACTERS]}")
    try:
        return reader(fields)
    except _Wrong as wrong:
        return Malformed(reason=str(wrong))


def _header(fields: Mapping[str, object]) -> Record:
    return Header(engine=_word(fields, "engine"), engine_version=_word(fields, "version"))


def _prefill(fields: Mapping[str, object]) -> Record:
    return Prefill(
        rid=_rid(fields),
        step=_count(fields, "step"),
        prompt=_count(fields, "prompt"),
        committed=_numbers(fields, "committed"),
        finish=_word(fields, "finish"),
    )


def _plain(fields: Mapping[str, object]) -> Record:
    return Plain(
        rid=_rid(fields),
        step=_count(fields, "step"),
        prefix=_count(fields, "prefix"),
        committed=_numbers(fields, "committed"),
        finish=_word(fields, "finish"),
    )


def _verified(fields: Mapping[str, object]) -> Record:
    record = Verified(
        rid=_rid(fields),
        step=_count(fields, "step"),
        prefix=_count(fields, "prefix"),
        tokens=_numbers(fields, "tokens"),
        target=_numbers(fields, "target"),
        path=_numbers(fields, "path"),
        committed=_numbers(fields, "committed"),
        parents=_optional_numbers(fields, "parents", low=-1),
        positions=_optional_numbers(fields, "positions", low=-MOST),
        bonus=_optional(fields, "bonus"),
        finish=_word(fields, "finish"),
        drafts=_optional(fields, "drafts"),
        depth=_optional(fields, "depth"),
        nodes=_optional(fields, "nodes"),
        block=_optional(fields, "block"),
        budget=_optional(fields, "budget"),
        topk=_optional(fields, "topk"),
    )
    if not record.tokens:
        raise _Wrong("a verify step without nodes")
    return record


def _end(fields: Mapping[str, object]) -> Record:
    return End(why=_word(fields, "why"))


READERS: Mapping[str, Callable[[Mapping[str, object]], Record]] = MappingProxyType(
    {"trace": _header, "prefill": _prefill, "plain": _plain, "verify": _verified, "end": _end}
)
"""What reads each kind of record."""


def _rid(fields: Mapping[str, object]) -> str:
    rid = fields.get("rid")
    if not isinstance(rid, str) or not 0 < len(rid) <= RID_CHARACTERS:
        raise _Wrong(f"rid is no text of 1 to {RID_CHARACTERS} characters")
    return rid


def _is_number(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= MOST


def _optional(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int) and _is_number(value, 0):
        return value
    raise _Wrong(f"{name} is no whole number of at least 0")


def _count(fields: Mapping[str, object], name: str) -> int:
    value = _optional(fields, name)
    if value is None:
        raise _Wrong(f"{name} is missing")
    return value


def _optional_numbers(fields: Mapping[str, object], name: str, *, low: int = 0) -> tuple[int, ...] | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MOST_NODES or not all(_is_number(each, low) for each in value):
        raise _Wrong(f"{name} is no list of up to {MOST_NODES} whole numbers")
    return tuple(value)


def _numbers(fields: Mapping[str, object], name: str) -> tuple[int, ...]:
    value = _optional_numbers(fields, name)
    if value is None:
        raise _Wrong(f"{name} is missing")
    return value


def _word(fields: Mapping[str, object], name: str) -> str | None:
    value = fields.get(name)
    return value[:WORD_CHARACTERS] if isinstance(value, str) else None
