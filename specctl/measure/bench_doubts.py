"""What makes a run's figures doubtful, in sentences: the sender too slow, prompts from a cache, other people's requests, heat."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specctl.control.sample.gpu import SLOWING
from specctl.measure.figures import Figures, figures
from specctl.measure.load import Closed, Run, Timing

# Beyond it, the sender's own thread had to wait for its turn so often that times of tokens are its own.
BUSY_RATIO = 0.7
# A reader that waits so long for a processor reads several chunks at once, whose gaps are then its own.
LAG_S = 0.01
CACHED_RATIO = 0.05
FULL_RATIO = 0.95
# A request that an open loop sends later than this part of its mean gap is no longer at its moment.
LATE_S = 0.05
FEW = 2
_NUMBER = re.compile(r"\d[\d.,]*")


def doubts(run: Run, found: Figures | None = None) -> tuple[str, ...]:
    """Return what speaks against a run's figures, gravest first; none: nothing was seen."""
    told = figures(run) if found is None else found
    words = [
        *_ended(run, told),
        *_failed(run.timings),
        *_foreign(told),
        *_sender(told),
        *_requests(run, told),
        *_gpus(told),
    ]
    return tuple(words)


def grouped(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of several runs, each once: of those that differ in their numbers alone the first, and how many."""
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(_NUMBER.sub("#", note), []).append(note)
    return tuple(f"{found[0]} (so in {len(found)} runs)" if len(found) > 1 else found[0] for found in kinds.values())


def _ended(run: Run, told: Figures) -> list[str]:
    if run.stopped is not None:
        return [f"the run ended before its time: {run.stopped}"]
    if told.window_s is None:
        return ["there was no steady stretch: too few requests, or none came to its end"]
    if told.requests < FEW and isinstance(run.level.pace, Closed):
        return ["fewer than two whole requests lie in the window: give more --rounds, or fewer --tokens"]
    return []


def _failed(timings: Sequence[Timing]) -> list[str]:
    failed = [each.failure for each in timings if each.failure is not None]
    if not failed:
        return []
    return [f"{len(failed)} of {len(timings)} requests failed: {failed[0]}"]


def _foreign(told: Figures) -> list[str]:
    if told.foreign_requests is not None and told.foreign_requests > 0:
        tokens = f" with {told.foreign_tokens:.0f} tokens" if told.foreign_tokens else ""
        return [f"the engine served {told.foreign_requests:.0f} other requests{tokens} meanwhile"]
    return []


def _sender(told: Figures) -> list[str]:
    return [*_bursts(told), *_busy(told)]


def _bursts(told: Figures) -> list[str]:
    if not told.bursts:
        return []
    rest = "EACH and STEPS/S are of the others" if told.bursts < told.requests else "EACH and STEPS/S are not known"
    return [
        f"{told.bursts} of {told.requests} answers came in bursts, not as they were made: {rest}, token times mean little"
    ]


def _busy(told: Figures) -> list[str]:
    busy = told.client_busy_ratio
    if busy is not None and busy > BUSY_RATIO:
        return [f"the sender took {busy:.2f} of a core: it may have been the bottleneck, not the engine"]
    if told.client_lag_s is not None and told.client_lag_s > LAG_S:
        late = f"{told.client_lag_s * 1000:.0f} ms"
        return [f"the sender's machine was busy: its alarms came {late} late (p95), and so may its times of tokens be"]
    return []


def _requests(run: Run, told: Figures) -> list[str]:
    words = []
    if told.cached_ratio is not None and told.cached_ratio > CACHED_RATIO:
        words.append(
            f"{told.cached_ratio * 100:.0f} % of the prompts' tokens came from the prefix cache: TTFT is not a prefill's"
        )
    wanted = run.level.concurrency
    if wanted is not None and told.in_flight is not None and told.in_flight < FULL_RATIO * wanted:
        words.append(f"{told.in_flight:.1f} requests were in flight on the mean, not {wanted}")
    if told.late_s is not None and told.late_s > LATE_S:
        words.append(f"a request was sent {told.late_s * 1000:.0f} ms after its moment")
    return words


def _gpus(told: Figures) -> list[str]:
    reasons = set(told.gpus.throttle or ()) & {each.value for each in SLOWING} if told.gpus else set()
    return [f"clocks were held down: {', '.join(sorted(reasons))}"] if reasons else []
