"""Parse /v1/loads: running and waiting requests, the age of what the scheduler published, and its sums over decode steps.

Pure. This route costs the engine no scheduler round trip and needs no --enable-metrics, so it is asked each tick. What it says of
throughput, cache and accept *rate* is not read: without --enable-metrics those are zeros that mean nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from specctl.control.sample.engine import NO_STEPS, DecodeSums, EngineLoad
from specctl.control.sample.numbers import amount, count, mapping, parsed

MAX_BYTES = 1 << 18
MAX_RANKS = 256
_MAX_VERSION = 40
_CLOCK_SLACK_S = 5.0
_MICRO = 1e-6

Rank = Mapping[str, object]


def parse(body: bytes) -> EngineLoad | None:
    """Return what one answer says; None where it is not an answer of /v1/loads. Never raises, whatever the body."""
    return read(parsed(body, MAX_BYTES))


def read(answer: object) -> EngineLoad | None:
    """Return what the JSON of one answer says; as `parse`."""
    top = mapping(answer)
    loads = top.get("loads") if top is not None else None
    if top is None or not isinstance(loads, list) or len(loads) > MAX_RANKS:
        return None
    ranks = [rank for rank in map(mapping, loads) if rank is not None]
    if len(ranks) < len(loads):
        return None
    version = top.get("version")
    return EngineLoad(
        running=_total(ranks, "num_running_reqs"),
        waiting=_total(ranks, "num_waiting_reqs"),
        max_running=_total(ranks, "max_running_requests"),
        used_tokens=_total(ranks, "num_used_tokens"),
        pool_tokens=_total(ranks, "max_total_num_tokens"),
        age_s=_age(top.get("timestamp"), ranks),
        lifetime_accept_length=_accept_length(ranks),
        decoded=_sums(ranks),
        ranks=len(ranks),
        version=version if isinstance(version, str) and len(version) <= _MAX_VERSION else None,
    )


def _total(ranks: Sequence[Rank], name: str) -> int | None:
    """Return the sum over data-parallel ranks; None where one of them does not say, or there is none."""
    values = [count(rank.get(name)) for rank in ranks]
    told = [value for value in values if value is not None]
    return sum(told) if told and len(told) == len(values) else None


def _age(answered: object, ranks: Sequence[Rank]) -> float | None:
    """Return the seconds between the oldest publication and the answer; None where either is not told or lies ahead."""
    published = [amount(rank.get("timestamp")) for rank in ranks]
    oldest = min((at for at in published if at is not None), default=None)
    if oldest is None or None in published or not isinstance(answered, str):
        return None
    try:
        moment = dt.datetime.fromisoformat(answered)
        if moment.tzinfo is None:
            return None
        age = moment.timestamp() - oldest
    except (ValueError, OverflowError):
        return None
    return max(age, 0.0) if age > -_CLOCK_SLACK_S else None


def _accept_length(ranks: Sequence[Rank]) -> float | None:
    """Return the mean of the ranks' lifetime accept lengths; under one token is none."""
    found = []
    for rank in ranks:
        spec = mapping(rank.get("speculative"))
        length = amount(spec.get("accept_length")) if spec is not None else None
        if length is None or length < 1:
            return None
        found.append(length)
    return sum(found) / len(found) if found else None


def _sums(ranks: Sequence[Rank]) -> DecodeSums | None:
    found = [_moments(rank["decode_moments"]) if "decode_moments" in rank else None for rank in ranks]
    told = [sums for sums in found if sums is not None]
    return sum(told[1:], told[0]) if told and len(told) == len(found) else None


def _moments(value: object) -> DecodeSums | None:
    """Return the sums; null is what SGLang answers before the first step (load_inquirer.py), and so a known zero."""
    if value is None:
        return NO_STEPS
    if not isinstance(value, list) or len(value) < 6:
        return None
    steps, requests, busy_us, _squares, request_busy_us, tokens = map(amount, value[:6])
    if steps is None or requests is None or busy_us is None or request_busy_us is None or tokens is None:
        return None
    return DecodeSums(
        steps=steps,
        requests=requests,
        busy_s=busy_us * _MICRO,
        request_busy_s=request_busy_us * _MICRO,
        tokens=tokens,
    )
