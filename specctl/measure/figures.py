"""The figures of one run, from the times of its requests: what bench shows, ab compares and calibrate fits.

Definitions (docs/bench.md has them in words). Tokens are the engine's own count at each chunk, never the number of chunks; a token
counts when its chunk came inside the window, and none outside does.

- *chunk gap*: seconds from one chunk of an answer to the next, as a reader feels them. A chunk of a speculative step has several
  tokens.
- *inter-token latency* (ITL): a gap spread evenly over its chunk's tokens, counted once a token, as `sglang.bench_serving` does
  for /generate (sglang 0.5.23, benchmark/serving.py: `adjust_itl = chunk_gap / num_new_tokens`).
- *time per output token* (TPOT) of a request: from its first chunk to its last, over the tokens after the first chunk; its inverse
  is the request's tokens a second.
- *burst*: an answer whose chunks did not come as they were made but were gathered on the way (a busy sender, a proxy, a network
  that stood still). It has no decoding time, so that neither TPOT nor verify steps a second are told of it.
- *accept length*: tokens a verify step of one request, bonus included, over requests that began and ended inside the window, one
  prefill token taken off each (design: metric truth). *Verify steps a second*: the same requests' steps over their decoding time,
  so that tokens and steps are on one basis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from specctl.measure.intervals import quantile
from specctl.measure.load import Closed, GpuReading, Run, Timing, Window

# No engine makes a verify step, and no network brings one, so soon after the one before: such a chunk was read together with it.
TOGETHER_S = 0.0002
BURST_PART = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Three quantiles, in seconds."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Return the quantiles of values; None of none."""
        if not values:
            return None
        return cls(p50=quantile(values, 0.5), p95=quantile(values, 0.95), p99=quantile(values, 0.99))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFigures:
    """The GPUs during the window: all together (`power_w`), on the mean (clock, busy) or at their worst (least clock, temperature).

    `throttle`: reasons seen on any of them; None where no reading told of reasons.
    """

    count: int
    power_w: float | None = None
    sm_clock_hz: float | None = None
    sm_clock_least_hz: float | None = None
    temperature_c: float | None = None
    busy_ratio: float | None = None
    throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One run in figures; seconds, tokens a second; None where the run does not tell.

    `requests`: whole ones that began and ended inside the window; `bursts`: how many of them came in bursts; `failed`: requests of
    the run without a whole answer. `in_flight`: mean number in flight during the window. `foreign_requests`, `foreign_tokens`: what
    the engine served meanwhile beyond ours, by its counters over the whole run; None where it has none. `cached_ratio`: part of the
    prompts' tokens that came from the engine's prefix cache. `client_busy_ratio`: part of one core that sending and reading took;
    `client_lag_s`: how late an alarm of the sender's came (p95).
    """

    window_s: float | None = None
    requests: int = 0
    failed: int = 0
    bursts: int = 0
    output_tokens: int = 0
    tokens_s: float | None = None
    request_tokens_s: float | None = None
    requests_s: float | None = None
    ttft: Spread | None = None
    latency: Spread | None = None
    gap: Spread | None = None
    itl: Spread | None = None
    tpot_s: float | None = None
    accept_length: float | None = None
    verify_steps_s: float | None = None
    in_flight: float | None = None
    prompt_tokens: float | None = None
    cached_ratio: float | None = None
    foreign_requests: float | None = None
    foreign_tokens: float | None = None
    client_busy_ratio: float | None = None
    late_s: float | None = None
    client_lag_s: float | None = None
    gpus: GpuFigures | None = None


def figures(run: Run) -> Figures:
    """Return the figures of a run; without a steady window those that need one are None."""
    window = window_of(run)
    failed = sum(each.failure is not None for each in run.timings)
    strangers_requests, strangers_tokens = foreign(run)
    if window is None:
        return Figures(failed=failed, foreign_requests=strangers_requests, foreign_tokens=strangers_tokens)
    inside = [each for each in run.timings if is_inside(each, window)]
    waited = inside if isinstance(run.level.pace, Closed) else [each for each in run.timings if _sent_in(each, window)]
    tokens = sum(tokens_in(each, window) for each in run.timings)
    tpots = [tpot for each in inside if (tpot := tpot_of(each)) is not None]
    length, steps_s = acceptance(inside)
    return Figures(
        window_s=window.span_s,
        requests=len(inside),
        failed=failed,
        bursts=sum(len(each.at_s) > 1 and decoding_s(each) is None for each in inside),
        output_tokens=tokens,
        tokens_s=tokens / window.span_s,
        request_tokens_s=median([1 / tpot for tpot in tpots]) if tpots else None,
        requests_s=len(inside) / window.span_s if isinstance(run.level.pace, Closed) else len(waited) / window.span_s,
        ttft=Spread.of([each.first_s - _begun(each) for each in waited if each.first_s is not None]),
        latency=Spread.of([each.ended_s - _begun(each) for each in waited]),
        gap=Spread.of([gap for each in run.timings for gap, _ in gaps(each, window)]),
        itl=Spread.of([gap / new for each in run.timings for gap, new in gaps(each, window) for _ in range(new)]),
        tpot_s=median(tpots) if tpots else None,
        accept_length=length,
        verify_steps_s=steps_s,
        in_flight=in_flight(run.timings, window),
        prompt_tokens=_middle([each.prompt_tokens for each in inside]),
        cached_ratio=_cached(inside),
        foreign_requests=strangers_requests,
        foreign_tokens=strangers_tokens,
        client_busy_ratio=run.client.busy_ratio,
        late_s=run.client.late_s,
        client_lag_s=run.client.lag_s,
        gpus=gpu_figures([each for each in run.gpus if window.holds(each.at_s)]),
    )


def window_of(run: Run) -> Window | None:
    """Return the steady stretch of a run; None where there is none.

    Closed loop: from when every slot has ended its warm-up (without one: has its first token) until the first slot sends no more,
    so that all slots are busy all the time. Open loop and trace: from the first counted arrival to the last.
    """
    counted = [each for each in run.timings if not each.warmup]
    if not counted:
        return None
    if isinstance(run.level.pace, Closed):
        slots = {each.slot for each in run.timings}
        if len(slots) < run.level.pace.concurrency:
            return None
        opened = max(_warm_s(run.timings, slot) for slot in slots)
        closed = min(max(each.ended_s for each in run.timings if each.slot == slot) for slot in slots)
    else:
        opened, closed = min(each.sent_s for each in counted), max(each.sent_s for each in counted)
    return Window(opened_s=opened, closed_s=closed) if closed > opened else None


def _warm_s(timings: Sequence[Timing], slot: int) -> float:
    """Return when a slot was warm: the end of its last warm-up; of its first whole answer where warm-ups failed; never: infinite.

    Without warm-ups it is warm at its first token.
    """
    own = [each for each in timings if each.slot == slot]
    warmups = [each for each in own if each.warmup]
    whole = [each.ended_s for each in warmups if each.whole]
    if whole:
        return max(whole)
    if warmups:
        return min((each.ended_s for each in own if each.whole), default=float("inf"))
    return min((each.first_s for each in own if each.first_s is not None), default=float("inf"))


def is_inside(timing: Timing, window: Window) -> bool:
    """Claim that a request counts, is whole, and began and ended in the window."""
    began = timing.sent_s >= window.opened_s
    return not timing.warmup and timing.whole and began and timing.ended_s <= window.closed_s


def _sent_in(timing: Timing, window: Window) -> bool:
    return not timing.warmup and timing.whole and window.opened_s <= timing.sent_s <= window.closed_s


def _begun(timing: Timing) -> float:
    """Return when a request began for whoever sent it: when it was due, where it had a time."""
    return timing.sent_s if timing.due_s is None else timing.due_s


def tokens_in(timing: Timing, window: Window) -> int:
    """Return the tokens whose chunk came inside the window, whichever request they are of."""
    before = 0
    found = 0
    for at_s, count in zip(timing.at_s, timing.counts, strict=True):
        found += count - before if window.holds(at_s) else 0
        before = count
    return found


def gaps(timing: Timing, window: Window) -> Iterator[tuple[float, int]]:
    """Yield the seconds between two chunks that both came inside the window, and the tokens that the later one brought."""
    rows = zip(timing.at_s, timing.counts, strict=True)
    for (before_s, before), (at_s, count) in itertools.pairwise(rows):
        if window.holds(before_s) and window.holds(at_s) and count > before:
            yield at_s - before_s, count - before


def decoding_s(timing: Timing) -> float | None:
    """Return the seconds from a request's first chunk to its last; None where that is not how long it decoded.

    So it is of one chunk alone, and of a burst: over a quarter of the chunks right behind the one before.
    """
    apart = [later - sooner for sooner, later in itertools.pairwise(timing.at_s)]
    together = sum(gap < TOGETHER_S for gap in apart)
    return None if not apart or together > BURST_PART * len(apart) else sum(apart)


def tpot_of(timing: Timing) -> float | None:
    """Return a request's time per output token; None where all its tokens came at once, or in a burst."""
    span_s = decoding_s(timing)
    if span_s is None:
        return None
    tokens = timing.counts[-1] - timing.counts[0]
    return span_s / tokens if tokens > 0 and span_s > 0 else None


def acceptance(inside: Sequence[Timing]) -> tuple[float | None, float | None]:
    """Return accept length and verify steps a second of requests that are whole inside a window.

    Both None where any of them does not tell its verify steps: a part of a sum is no sum. The first token of each request is of
    its prefill and is no step's. Verify steps a second are of the requests that tell how long they decoded; None where none does.
    """
    told = [each for each in inside if each.verify_steps]
    if not told or len(told) < len(inside):
        return None, None
    steps = sum(each.verify_steps or 0 for each in told)
    tokens = sum((each.output_tokens or 0) - 1 for each in told)
    timed = [(each.verify_steps or 0, span_s) for each in told if (span_s := decoding_s(each)) is not None]
    busy_s = sum(span_s for _, span_s in timed)
    return tokens / steps, sum(count for count, _ in timed) / busy_s if busy_s > 0 else None


def in_flight(timings: Sequence[Timing], window: Window) -> float:
    """Return the mean number of requests in flight during the window."""
    spent = sum(max(0.0, min(each.ended_s, window.closed_s) - max(each.sent_s, window.opened_s)) for each in timings)
    return spent / window.span_s


def foreign(run: Run) -> tuple[float | None, float | None]:
    """Return requests and tokens that the engine finished meanwhile beyond ours; None where its counters do not tell.

    Counters grow when a request ends, so they are held against answers that came to their end; one that we hung up on, or that
    failed, may have been counted or not: then nothing can be told.
    """
    before, after = run.before, run.after
    if before is None or after is None or before.page is None or after.page is None or before.seed != after.seed:
        return None, None
    if any(each.failure is not None or each.unfinished for each in run.timings):
        return None, None
    requests = _gained(before.page.requests, after.page.requests)
    tokens = _gained(before.page.generated_tokens, after.page.generated_tokens)
    ours = sum(each.output_tokens or 0 for each in run.timings)
    return (
        None if requests is None else requests - len(run.timings),
        None if tokens is None else tokens - ours,
    )


def _gained(before: float | None, after: float | None) -> float | None:
    """Return what a counter gained; one that is absent before the first request began at zero."""
    return None if after is None else after - (before or 0.0)


def gpu_figures(readings: Sequence[GpuReading]) -> GpuFigures | None:
    """Return what the readings of a window come to; None without any."""
    indexes = sorted({each.index for each in readings})
    if not indexes:
        return None
    means = [_mean([each.power_w for each in readings if each.index == index]) for index in indexes]
    clocks = [each.sm_clock_hz for each in readings if each.sm_clock_hz is not None]
    heats = [each.temperature_c for each in readings if each.temperature_c is not None]
    told = [each.throttle for each in readings if each.throttle is not None]
    powers = [mean for mean in means if mean is not None]
    return GpuFigures(
        count=len(indexes),
        power_w=sum(powers) if len(powers) == len(indexes) else None,
        sm_clock_hz=fmean(clocks) if clocks else None,
        sm_clock_least_hz=min(clocks, default=None),
        temperature_c=max(heats, default=None),
        busy_ratio=_mean([each.busy_ratio for each in readings]),
        throttle=tuple(sorted({reason for reasons in told for reason in reasons})) if told else None,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _middle(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _cached(inside: Sequence[Timing]) -> float | None:
    told = [each for each in inside if each.cached_tokens is not None and each.prompt_tokens]
    if not told or len(told) < len(inside):
        return None
    return sum(each.cached_tokens or 0 for each in told) / sum(each.prompt_tokens or 0 for each in told)
