"""What else could have made the difference: each confounder held against what was seen around the segments; pure.

A confounder is ruled out by evidence, found by evidence, or neither: where a host tells nothing of it, that is said. Thresholds
are in docs/ab.md.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from specctl.control.sample.gpu import SLOWING
from specctl.measure.ab_types import PRIMARY, Segment
from specctl.measure.figures import Figures

CLOCK_PART = 0.02
FLIGHT_PART = 0.05
PROMPT_PART = 0.01
CACHED_PART = 0.02
DRIFT_PART = 0.03
CLIENT_PART = 0.85
FOREIGN_PART = 0.10
STOLEN_PART = 0.02
BURST_PART = 0.10
CLOCKS, THROTTLING, THERMAL, PROCESSES = "clocks", "throttling", "thermal state", "other processes on the GPUs"
NO_GPU = "the engine computes on the processors alone"


class Standing(enum.Enum):
    """What is known of a confounder."""

    RULED_OUT = "ruled out"
    FOUND = "found"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confounder:
    """One confounder: what it is called, how it stands, and the evidence in words."""

    name: str
    standing: Standing
    evidence: str

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {"name": self.name, "standing": self.standing.value, "evidence": self.evidence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that the confounders are judged by; `letters` names the arms, `tokens` what every request asked for.

    `gpu` false: the engine computes on processors alone, so that no GPU can make a difference.
    """

    segments: Sequence[Segment]
    concurrencies: Sequence[int]
    letters: str
    tokens: int
    gpu: bool = True

    def runs(self, arm: int | None = None) -> Iterator[tuple[int, Figures]]:
        """Yield every run with its concurrency."""
        for segment in self.segments:
            if arm is None or segment.arm == arm:
                for level in segment.levels:
                    for run in level.runs:
                        yield level.concurrency, run

    @property
    def arms(self) -> tuple[int, ...]:
        """Return the arms that were measured."""
        return tuple(sorted({segment.arm for segment in self.segments}))

    def by_arm(self, concurrency: int, take: Callable[[Figures], float | None]) -> dict[int, float] | None:
        """Return the mean of a value for each arm at a concurrency; None where a run does not tell it."""
        found: dict[int, float] = {}
        for arm in self.arms:
            values = [take(run) for at, run in self.runs(arm) if at == concurrency]
            known = [value for value in values if value is not None]
            if not known or len(known) < len(values):
                return None
            found[arm] = fmean(known)
        return found


def judge(seen: Seen) -> tuple[Confounder, ...]:
    """Return how every confounder stands."""
    of_gpus = () if seen.gpu else OF_GPUS
    return tuple(_out(NAMES[check], NO_GPU) if check in of_gpus else check(seen) for check in CHECKS)


def _throttling(seen: Seen) -> Confounder:
    name = THROTTLING
    told = [(segment, _throttles(segment)) for segment in seen.segments]
    if any(reasons is None for _, reasons in told):
        return _unknown(name, "the host tells no reasons of throttling")
    slow = {str(each) for each in SLOWING}
    hits = [f"{_place(seen, s)} ({', '.join(sorted(slow & set(r or ())))})" for s, r in told if slow & set(r or ())]
    if hits:
        return _found(name, f"a GPU slowed itself in {_listed(hits)}")
    uneven = _uneven(seen, [(segment, bool({*(reasons or ())} - {"idle"})) for segment, reasons in told])
    if uneven:
        return _found(name, f"a cap held the clocks of one arm more often: {uneven}")
    return _out(name, "no GPU slowed itself, and caps held both arms alike")


def _throttles(segment: Segment) -> tuple[str, ...] | None:
    told = [run.gpus.throttle if run.gpus else None for level in segment.levels for run in level.runs]
    if not told or any(reasons is None for reasons in told):
        return None
    return tuple(sorted({str(reason) for reasons in told for reason in reasons or ()}))


def _uneven(seen: Seen, rows: Sequence[tuple[Segment, bool]]) -> str:
    """Say how often each arm was hit where that is not alike."""
    counts = {arm: [hit for segment, hit in rows if segment.arm == arm] for arm in seen.arms}
    parts = {arm: sum(hits) / len(hits) for arm, hits in counts.items()}
    if max(parts.values()) - min(parts.values()) < 0.5:
        return ""
    return ", ".join(f"{seen.letters[arm]} {sum(counts[arm])} of {len(counts[arm])}" for arm in parts)


def _clocks(seen: Seen) -> Confounder:
    name = CLOCKS
    worst, text = 0.0, ""
    for concurrency in seen.concurrencies:
        means = seen.by_arm(concurrency, lambda run: run.gpus.sm_clock_hz if run.gpus else None)
        if means is None:
            return _unknown(name, "the host tells no clocks of GPUs")
        part = max(means.values()) / min(means.values()) - 1 if min(means.values()) > 0 else 0.0
        if part >= worst:
            worst = part
            text = ", ".join(f"{seen.letters[arm]} {mean / 1e6:.0f} MHz" for arm, mean in means.items())
    return (_found if worst > CLOCK_PART else _out)(name, f"SM clocks on the mean: {text}")


def _temperature(seen: Seen) -> Confounder:
    name = THERMAL
    if any(segment.settled is None for segment in seen.segments):
        return _unknown(name, "the host tells no temperature of GPUs at rest")
    late = [_place(seen, segment) for segment in seen.segments if segment.settled is False]
    if late:
        return _found(name, f"the GPUs were not as in the first segment when {_listed(late)} began")
    return _out(name, "every segment began with the GPUs as in the first one")


def _processes(seen: Seen) -> Confounder:
    name = PROCESSES
    if any(segment.around.strangers is None for segment in seen.segments):
        return _unknown(name, "the host does not tell who uses its GPUs")
    hits = [f"{_place(seen, s)} ({', '.join(s.around.strangers or ())})" for s in seen.segments if s.around.strangers]
    return (
        _found(name, f"during {_listed(hits)}")
        if hits
        else _out(name, "none but the server's, before and after each segment")
    )


def _processors(seen: Seen) -> Confounder:
    name = "other load on the processors"
    told = [(s, s.around.foreign_cores, s.around.cores) for s in seen.segments]
    if any(busy is None or not cores for _, busy, cores in told):
        return _unknown(name, "the host does not tell what its processors do")
    parts = {s.place: (busy or 0.0) / (cores or 1) for s, busy, cores in told}
    stolen = [_place(seen, s) for s in seen.segments if (s.around.stolen_ratio or 0.0) > STOLEN_PART]
    hits = [
        f"{_place(seen, s)} ({busy:.1f} of {cores} cores)" for s, busy, cores in told if parts[s.place] > FOREIGN_PART
    ]
    if hits or stolen:
        if len(hits) > 1 and len(hits) == len(told):
            hits = [f"every segment (up to {max(busy or 0.0 for _, busy, _ in told):.1f} of {told[0][2]} cores)"]
        words = [f"others were busy during {_listed(hits)}"] if hits else []
        words += [f"the hypervisor took time from {_listed(stolen)}"] if stolen else []
        return _found(name, "; ".join(words))
    return _out(name, f"others used at most {100 * max(parts.values()):.0f} % of the cores")


def _requests(seen: Seen) -> Confounder:
    name = "other requests"
    runs = [(s, run) for s in seen.segments for level in s.levels for run in level.runs]
    if any(run.foreign_requests is None and run.foreign_tokens is None for _, run in runs):
        return _unknown(name, "the engine does not count its requests (--enable-metrics), or an answer was lost")
    hits = {_place(seen, s): 0.0 for s, run in runs if (run.foreign_requests or 0) > 0 or (run.foreign_tokens or 0) > 0}
    for s, run in runs:
        if _place(seen, s) in hits:
            hits[_place(seen, s)] += max(run.foreign_requests or 0.0, 0.0)
    words = [f"{place} ({count:.0f})" for place, count in hits.items()]
    return (
        _found(name, f"the server answered others during {_listed(words)}")
        if hits
        else _out(name, "the engine counted ours alone")
    )


def _prompts(seen: Seen) -> Confounder:
    return _alike(seen, "prompts and context", lambda run: run.prompt_tokens, PROMPT_PART, "tokens of a prompt")


def _lengths(seen: Seen) -> Confounder:
    name = "lengths"
    failed = {_place(seen, s) for s in seen.segments for level in s.levels for run in level.runs if run.failed}
    if failed:
        return _found(name, f"requests failed or ended early in {_listed(sorted(failed))}")
    return _out(name, f"every answer has the {seen.tokens} tokens that were asked for")


def _concurrency(seen: Seen) -> Confounder:
    return _alike(seen, "concurrency", lambda run: run.in_flight, FLIGHT_PART, "requests in flight")


def _alike(seen: Seen, name: str, take: Callable[[Figures], float | None], part: float, words: str) -> Confounder:
    """Hold a mean of one arm against the others', at each concurrency."""
    shown = []
    for concurrency in seen.concurrencies:
        means = seen.by_arm(concurrency, take)
        if means is None:
            return _unknown(name, f"the engine does not tell the {words}")
        low, high = min(means.values()), max(means.values())
        shown.append(f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}")
        if high > low * (1 + part):
            each = ", ".join(f"{seen.letters[arm]} {mean:.1f}" for arm, mean in means.items())
            return _found(name, f"{words} at {concurrency}: {each}")
    return _out(name, f"{words} in every arm: {', '.join(shown)}")


def _cache(seen: Seen) -> Confounder:
    name = "prefix cache"
    shares = [seen.by_arm(concurrency, lambda run: run.cached_ratio) for concurrency in seen.concurrencies]
    known = [means for means in shares if means is not None]
    if len(known) < len(shares):
        return _unknown(name, "the engine does not tell what came from its cache")
    worst = max(max(means.values()) - min(means.values()) for means in known)
    top = max(max(means.values()) for means in known)
    text = f"at most {100 * top:.0f} % of the prompts' tokens came from it, {100 * worst:.0f} % more in one arm than in another"
    return (_found if worst > CACHED_PART else _out)(name, text)


def _client(seen: Seen) -> Confounder:
    name = "the sender's own speed"
    busy = [run.client_busy_ratio for _, run in seen.runs() if run.client_busy_ratio is not None]
    if not busy:
        return _unknown(name, "the sender was not timed")
    text = f"sending took at most {100 * max(busy):.0f} % of a core"
    bursts, requests = (
        sum(counts) for counts in zip(*((run.bursts, run.requests) for _, run in seen.runs()), strict=True)
    )
    if bursts > BURST_PART * requests:
        return _found(name, f"{bursts} of {requests} answers came in bursts, not as they were made; {text}")
    return (_found if max(busy) > CLIENT_PART else _out)(name, text)


def _drift(seen: Seen) -> Confounder:
    """Compare the first and the last segment of the first arm: what is steady is taken out by the order, and still said."""
    name = "drift"
    rows = [segment for segment in seen.segments if segment.arm == seen.segments[0].arm]
    if len(rows) < 2:
        return _unknown(name, "an arm was measured once")
    worst = 0.0
    for concurrency in seen.concurrencies:
        first, last = rows[0].value(concurrency, PRIMARY), rows[-1].value(concurrency, PRIMARY)
        if not first or not last:
            return _unknown(name, "a segment has no throughput")
        worst = max(worst, last / first - 1, 1 - last / first, key=abs) if abs(last / first - 1) > abs(worst) else worst
    letter = seen.letters[rows[0].arm]
    text = f"{letter}'s last segment differs from its first by {100 * abs(worst):.1f} %"
    if abs(worst) > DRIFT_PART:
        return _found(name, f"{text}; the order takes out what of it was steady")
    return _out(name, text)


def _starts(seen: Seen) -> Confounder:
    name = "restarts"
    hits = [f"{_place(seen, s)} ({s.around.upset})" for s in seen.segments if s.around.upset]
    return _found(name, _listed(hits)) if hits else _out(name, "every segment was one start of the engine")


CHECKS: tuple[Callable[[Seen], Confounder], ...] = (
    _clocks,
    _throttling,
    _temperature,
    _processes,
    _processors,
    _requests,
    _prompts,
    _lengths,
    _concurrency,
    _cache,
    _client,
    _drift,
    _starts,
)


NAMES = {_clocks: CLOCKS, _throttling: THROTTLING, _temperature: THERMAL, _processes: PROCESSES}
OF_GPUS = tuple(NAMES)


def _place(seen: Seen, segment: Segment) -> str:
    return f"segment {segment.place + 1} ({seen.letters[segment.arm]})"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def _out(name: str, evidence: str) -> Confounder:
    return Confounder(name=name, standing=Standing.RULED_OUT, evidence=evidence)


def _found(name: str, evidence: str) -> Confounder:
    return Confounder(name=name, standing=Standing.FOUND, evidence=evidence)


def _unknown(name: str, evidence: str) -> Confounder:
    return Confounder(name=name, standing=Standing.UNKNOWN, evidence=evidence)
