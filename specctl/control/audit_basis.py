"""Checks of bases: the same tokens, steps and seconds, counted in two ways, must agree over one window."""

from __future__ import annotations

from specctl.control.audit_types import AuditInput, Finding, Unknown, Verdict
from specctl.control.sample.engine import Counted, DecodeSums

LEAST_SPAN_S = 60.0
"""Pages come each ten seconds and publications each 15 steps: what two of them count apart is small over a minute."""
LEAST_TOKENS = 500.0
LEAST_REQUESTS = 20.0
APART = 0.2
LATE_S = 5.0
"""The newest publication may carry steps from before the window: under 3 s when busy (recordings, surprise 14)."""


def _paged(given: AuditInput) -> tuple[DecodeSums, Counted] | None:
    """Return what the sums and what the counters gained between the first and the last page of the window."""
    pages = [place for place, sample in enumerate(given.window.samples) if sample.counted is not None]
    if not pages or any(sample.restarted for sample in given.window.samples):
        return None
    # The first page's counters reach back before the window: both sides begin behind it.
    within = given.window.samples[pages[0] + 1 : pages[-1] + 1]
    sums = [sample.decoded for sample in within if sample.decoded is not None]
    counted = [sample.counted for sample in within if sample.counted is not None]
    if not sums or not counted:
        return None
    return sum(sums[1:], sums[0]), _added(counted)


def _added(parts: list[Counted]) -> Counted:
    def total(values: list[float | None]) -> float | None:
        told = [value for value in values if value is not None]
        return sum(told) if len(told) == len(values) else None

    return Counted(
        span_s=sum(part.span_s for part in parts),
        decode_tokens=total([part.decode_tokens for part in parts]),
        generated_tokens=total([part.generated_tokens for part in parts]),
        verify_calls=total([part.verify_calls for part in parts]),
        requests=total([part.requests for part in parts]),
    )


def tokens(given: AuditInput) -> Verdict:
    """Hold tokens by steps (steps × batch × commit) against realtime_tokens_total over the same pages.

    Fewer by steps contradict nothing: a step behind a prefill is not in the sums, its tokens are in the counter.
    """
    paged = _paged(given)
    if paged is None or paged[1].decode_tokens is None or paged[1].span_s < LEAST_SPAN_S:
        return Unknown(reason="fewer than two pages of counters, a minute apart, beside sums over decode steps")
    by_steps, by_counter = paged[0].tokens, paged[1].decode_tokens
    if by_steps < LEAST_TOKENS:
        return Unknown(reason=f"fewer than {LEAST_TOKENS:.0f} tokens in the window")
    if by_steps <= by_counter * (1 + APART):
        return None
    return Finding(
        id="M006",
        title="steps committed more tokens than were generated",
        reason=f"{by_steps:.0f} tokens by decode steps and {by_counter:.0f} by the counter in {paged[1].span_s:.0f} s",
    )


def finished(given: AuditInput) -> Verdict:
    """Hold the commit of finished requests against that of steps; each request's first token is its prefill's.

    Both counters grow when a request ends, so their ratio is of whole requests; it is compared over many of them only.
    """
    paged = _paged(given)
    if paged is None or not paged[1].verify_calls or not paged[1].requests or paged[1].generated_tokens is None:
        return Unknown(reason="no verify calls of finished requests were counted")
    sums, counted = paged
    length = sums.accept_length
    if length is None or paged[1].requests < LEAST_REQUESTS:
        return Unknown(reason=f"fewer than {LEAST_REQUESTS:.0f} requests ended in the window")
    commit = (paged[1].generated_tokens - paged[1].requests) / paged[1].verify_calls
    if abs(commit - length) <= APART * length:
        return None
    return Finding(
        id="M007",
        title="finished requests and steps tell two commits",
        reason=f"{commit:.2f} tokens a verify call over {counted.requests:.0f} finished requests, {length:.2f} over steps",
        blocks=False,
    )


def decode_time(given: AuditInput) -> Verdict:
    """Hold seconds of decoding against the clock: a rank cannot decode for longer than the time that passed."""
    known = [sample for sample in given.window.samples if sample.decoded is not None and sample.span_s is not None]
    if not known:
        return Unknown(reason="no sums over decode steps")
    passed = known[-1].at_s - known[0].at_s + (known[0].span_s or 0.0)
    busy = sum(sample.decoded.busy_s / sample.ranks for sample in known if sample.decoded is not None)
    if busy <= passed * (1 + APART) + LATE_S:
        return None
    return Finding(
        id="M008",
        title="more time was decoded than passed",
        reason=f"{busy:.1f} s of decode steps in {passed:.1f} s",
    )


def went_back(given: AuditInput) -> Verdict:
    """Hold counters that began anew against the unit: without a restart none may go back."""
    if given.same_start is None:
        return Unknown(reason="whether the unit was started anew is not known")
    if not given.same_start or not any(sample.restarted for sample in given.window.samples):
        return None
    return Finding(
        id="M009",
        title="counters went back without a restart",
        reason="counters of the engine fell, and its unit was not started anew",
    )


def running(given: AuditInput) -> Verdict:
    """Hold running requests against the engine's own limit."""
    newest = given.window.samples[-1] if given.window.samples else None
    count, limit = (None, None) if newest is None else (newest.running, newest.max_running)
    if count is None or not limit:
        return Unknown(reason="running requests, or their limit, are not known")
    if count <= limit:
        return None
    return Finding(
        id="M010",
        title="more requests run than may",
        reason=f"{count} running, and the engine's limit is {limit}",
    )
