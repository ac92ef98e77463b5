"""One answer of /generate as it came, an event at a time: which tokens each verify step brought, by its own counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specctl.doctor.lossless_types import Answered

MOST = 1 << 40
"""Counts beyond this are no counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one event brought: tokens, verify steps and right drafts; the latter are None where the answer does not say."""

    tokens: tuple[int, ...]
    steps: int | None = None
    correct: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an answer says of itself so far."""

    tokens: tuple[int, ...]
    prompt_tokens: int | None = None
    verify_calls: int | None = None
    correct_drafts: int | None = None
    finish: str | None = None


def told(body: Mapping[str, object]) -> Told | None:
    """Read one answer of /generate; None where it tells no token ids."""
    ids = body.get("output_ids")
    if not isinstance(ids, list) or not all(_count(each) is not None for each in ids):
        return None
    found = body.get("meta_info")
    meta: Mapping[str, object] = found if isinstance(found, Mapping) else {}
    reason = meta.get("finish_reason")
    finish = reason.get("type") if isinstance(reason, Mapping) else None
    return Told(
        tokens=tuple(ids),
        prompt_tokens=_count(meta.get("prompt_tokens")),
        verify_calls=_count(meta.get("spec_verify_ct")),
        correct_drafts=_count(meta.get("spec_num_correct_drafts")),
        finish=str(finish) if isinstance(finish, str) else None,
    )


def chunks(events: Iterable[Told]) -> tuple[Chunk, ...]:
    """Return what each event added to the one before it; events that repeat the whole answer, as SGLang's do."""
    found: list[Chunk] = []
    before = Told(tokens=(), verify_calls=0, correct_drafts=0)
    for event in events:
        fresh = event.tokens[len(before.tokens) :]
        if not fresh:
            continue
        steps = _added(event.verify_calls, before.verify_calls)
        correct = _added(event.correct_drafts, before.correct_drafts)
        # The prefill's token comes before any count is told.
        first = not found and event.verify_calls is None
        found.append(Chunk(tokens=fresh, steps=0 if first else steps, correct=0 if first else correct))
        before = event if not first else Told(tokens=event.tokens, verify_calls=0, correct_drafts=0)
    return tuple(found)


def answered(rid: str, asked: int, end: Told) -> Answered:
    """Return a request as its last event tells it."""
    return Answered(
        rid=rid,
        asked=asked,
        tokens=len(end.tokens),
        verify_calls=end.verify_calls,
        correct_drafts=end.correct_drafts,
        finish=end.finish,
    )


def _added(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None or now < before else now - before


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None
