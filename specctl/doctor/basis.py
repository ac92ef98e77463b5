"""The arithmetic of the doctor: tokens a step, seconds a step and what they say together, each with its source (docs/doctor.md).

Pure. The one basis of design.md §7: verify calls of whole requests, one prefill token taken off each. Steps are of one request: a
batch steps together, so a request's steps a second are the batch's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.mode import Mode
from specctl.control.sample.engine import EngineCounters
from specctl.doctor.evidence import Evidence, Pair, Speed

LEAST_STEPS = 64
"""Verify steps of single requests without which tokens a step are no figure (the smoke's own count, docs/gate.md)."""
ROUNDING = 0.006
"""Lines print two decimals."""
EDGE_STEPS = 80.0
"""Log windows and requests do not begin and end together: up to two intervals of 40 steps differ."""
EDGE_RATIO = 0.25
"""How far the tokens a step of so few steps may be off the mean of all; the lab's own prompts stay within it."""
NOISE_RATIO = 0.05
"""What is left between two counts of the same steps beside their edges; no source, a choice."""
APART_RATIO = 0.25
"""Two accept lengths of different requests differ by task; by more than a quarter is a contradiction (control/audit_lengths.py)."""
SPREAD_RATIO = 0.5
"""How far one request's accept length is from the mean; the lab's prompts and the recordings are within it."""
LEAST_REQUESTS = 20.0
WIDEST = "speculative_num_draft_tokens"
"""What /server_info calls the tokens that a step may verify, anchor or root included."""
SAME_RATIO = 0.03
"""Two throughputs closer than this are the same: the run-to-run spread of a careful bench; no source, a choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Tokens a verify step of one request, measured on the one basis: of `steps` steps of `requests` whole requests."""

    length: float
    steps: float
    requests: float
    source: str
    noise: float = NOISE_RATIO

    @property
    def slack(self) -> float:
        """Return how far another count of the same steps may honestly be off, in tokens a step."""
        return self.length * (self.noise + min(EDGE_STEPS / self.steps, 1.0) * EDGE_RATIO)

    def lost_to_ends(self, most_drafts: float) -> float:
        """Return the most tokens a step that requests can lose by ending inside a block: all but one of one block a request."""
        return most_drafts * self.requests / self.steps


def shape_of(mode: Mode | None) -> Shape | None:
    """Return what a mode's steps verify; None where the mode is unknown."""
    return None if mode is None else ALGOS[mode.algo].shape


def checked(mode: Mode) -> int | None:
    """Return how many tokens of a request a step of the mode verifies, anchor or root included."""
    return ALGOS[mode.algo].checked(dict(mode.knobs))


def max_drafts(mode: Mode | None) -> int | None:
    """Return the most drafts that a step of the mode can accept."""
    return None if mode is None else ALGOS[mode.algo].max_drafts(dict(mode.knobs))


def proposed(evidence: Evidence) -> frozenset[int]:
    """Return what the engine's accept rate may divide by, in drafts a step: the mode's most, or the most that the engine allows.

    An engine that changes its mode live may divide by the widest of them all (docs/ddtree-plugin.md, Metrics).
    """
    said = None if evidence.info is None else evidence.info.said.get(WIDEST)
    known = (max_drafts(evidence.mode), said - 1 if isinstance(said, int) else None)
    return frozenset(drafts for drafts in known if drafts is not None and drafts > 0)


def per_request(speed: Speed) -> float:
    """Return tokens a second of one request: all tokens a second over the concurrency (1 where it is not told)."""
    return speed.tokens_s / (speed.concurrency or 1.0)


def accepted(speed: Speed) -> float | None:
    """Return tokens a step: counted, else as reported; exactly 1 without speculation."""
    if shape_of(speed.mode) is Shape.NONE:
        return 1.0
    return speed.tokens_per_step if speed.tokens_per_step is not None else speed.accept_length


def step_s(speed: Speed) -> float | None:
    """Return the seconds of a step: measured where steps were counted, else tokens a step over tokens a second of a request."""
    if speed.steps_s is not None and speed.steps_s > 0:
        return 1.0 / speed.steps_s
    length, rate = accepted(speed), per_request(speed)
    return None if length is None or rate <= 0 else length / rate


def same_load(one: Speed, other: Speed) -> bool:
    """Claim that two figures are of one concurrency and the same requests (unknown counts as equal to unknown only)."""
    return one.concurrency == other.concurrency and one.source == other.source


def best(speeds: Iterable[Speed]) -> Speed | None:
    """Return the figure with the most behind it: counted steps before reported lengths; the last of equals."""
    found: Speed | None = None
    for speed in speeds:
        if found is None or _weight(speed) >= _weight(found):
            found = speed
    return found


def _weight(speed: Speed) -> int:
    return 2 * (speed.steps_s is not None or speed.tokens_per_step is not None) + (speed.accept_length is not None)


def of_mode(evidence: Evidence, mode: Mode | None) -> tuple[Speed, ...]:
    """Return the figures of a mode: those whose knobs do not contradict it (a figure may name fewer)."""
    return () if mode is None else tuple(one for one in evidence.speeds if fits(one.mode, mode))


def fits(one: Mode, other: Mode) -> bool:
    """Claim that two modes can be one: the same algo, and no knob that both name at two values."""
    mine, theirs = dict(one.knobs), dict(other.knobs)
    return one.algo == other.algo and all(theirs[name] == value for name, value in mine.items() if name in theirs)


def committed(evidence: Evidence) -> Committed | None:
    """Return tokens a verify step as measured, from the best basis there is; None where nothing measured it."""
    return _of_served(evidence) or _of_speed(evidence) or _of_counters(evidence)


def _of_served(evidence: Evidence) -> Committed | None:
    whole = [one for one in evidence.served if one.verify_calls and one.tokens >= 1 and one.finish != "abort"]
    steps = float(sum(one.verify_calls or 0 for one in whole))
    if steps < LEAST_STEPS:
        return None
    gained = float(sum(one.tokens - 1 for one in whole))
    if gained <= 0:
        return None
    source = f"{len(whole)} requests of our own: {gained:.0f} tokens after their first in {steps:.0f} verify calls"
    noise = NOISE_RATIO if evidence.served_alone else APART_RATIO
    return Committed(length=gained / steps, steps=steps, requests=float(len(whole)), source=source, noise=noise)


def _of_speed(evidence: Evidence) -> Committed | None:
    """Return the figure of a run that counted verify steps a second beside tokens a second.

    A figures file says that run and log are of the same requests; a host's log is of others than a bench of some other day was.
    """
    if evidence.observations:
        return None
    for speed in reversed(of_mode(evidence, evidence.mode)):
        if speed.steps_s is not None and speed.steps_s > 0:
            length = per_request(speed) / speed.steps_s
            words = f"{per_request(speed):.1f} tokens/s of a request ÷ {speed.steps_s:.1f} verify steps/s"
            return Committed(length=length, steps=math.inf, requests=0.0, source=words)
        if speed.tokens_per_step is not None:
            words = f"{speed.tokens_per_step:.2f} tokens a verify step, counted by {speed.run or 'that run'}"
            return Committed(length=speed.tokens_per_step, steps=math.inf, requests=0.0, source=words)
    return None


def _of_counters(evidence: Evidence) -> Committed | None:
    """Return the figure of the requests that ended since the start, by the engine's counters; both grow when a request ends."""
    counters = counted(evidence)
    if counters is None or counters.verify_calls is None or counters.verify_calls < LEAST_STEPS:
        return None
    tokens, requests = counters.generated_tokens, counters.requests
    if tokens is None or requests is None or tokens <= requests or requests < LEAST_REQUESTS or not evidence.steady:
        return None
    length = (tokens - requests) / counters.verify_calls
    words = f"counters since the start: {tokens - requests:.0f} tokens after the first of {requests:.0f} requests"
    source = f"{words} in {counters.verify_calls:.0f} verify calls"
    # The log's lines are of steps, these are of requests that ended; only a whole log is of the same ones.
    same = evidence.log is not None and evidence.log.whole and not evidence.log.lost
    noise = 2 * NOISE_RATIO + SPREAD_RATIO / math.sqrt(requests) if same else APART_RATIO
    return Committed(length=length, steps=counters.verify_calls, requests=requests, source=source, noise=noise)


def present(evidence: Evidence) -> Sequence[Pair]:
    """Return the log windows that are known to be of the present mode: all, or those since it was told, or of our load."""
    log = evidence.log
    if log is not None and evidence.steady:
        return log.windows
    if log is not None and log.since_change is not None:
        # The first window began before.
        return log.windows[max(len(log.windows) - log.since_change, 0) :][1:]
    return () if evidence.served_log is None else evidence.served_log.windows


def counted(evidence: Evidence) -> EngineCounters | None:
    """Return the newest page of counters."""
    pages = [one.page for one in evidence.observations if one.page is not None]
    return pages[-1].counters if pages else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Means over the tree lines of a log, weighted by batch, and how many lines there are."""

    lines: int
    drafts: float | None = None
    commit: float | None = None
    depth: float | None = None


def told(windows: Sequence[Pair]) -> Told:
    """Return the means over the tree lines of log windows; a figure that no line tells is None.

    A chain has no such lines: its drafts are the accept length of its decode lines less the bonus token.
    """
    lines = [one.tree for one in windows if one.tree is not None]
    if not lines:
        return _of_chain(windows)
    weighted: dict[str, list[tuple[float, float]]] = {"drafts": [], "commit": [], "depth": []}
    for line in lines:
        weight = float(line.batch or 1)
        for name, value in (("drafts", line.accepted_drafts), ("commit", line.commit), ("depth", line.depth)):
            if value is not None:
                weighted[name].append((value, weight))
    means = {name: mean(pairs) for name, pairs in weighted.items()}
    return Told(lines=len(lines), drafts=means["drafts"], commit=means["commit"], depth=means["depth"])


def _of_chain(windows: Sequence[Pair]) -> Told:
    decoded = [one.decode for one in windows if one.decode is not None and one.decode.accept_length is not None]
    length = mean(((one.accept_length or 0.0), float(one.running or 1)) for one in decoded)
    return Told(lines=len(decoded), drafts=None if length is None else length - 1)


def mean(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Return the weighted mean; None of nothing."""
    total, weight = 0.0, 0.0
    for value, share in pairs:
        total += value * share
        weight += share
    return total / weight if weight > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Tokens a step of a mode, if its steps take as long as those of another mode that was measured beside it.

    `step_s`: that other mode's seconds a step. `base_steps`: the same in steps without speculation, None where none was measured.
    `at_least`: this mode verifies more tokens a step than the other, so its steps are longer and it commits more.
    """

    length: float
    step_s: float
    base_steps: float | None
    tokens_s: float
    reference: Speed
    at_least: bool


def estimate(evidence: Evidence) -> Estimate | None:
    """Return what the throughput makes of the mode at another mode's step time; None without two figures of one load.

    The field's arithmetic: 110.4 tokens/s at 2.30 a step are steps of 20.8 ms, at which 109.7 tokens/s are 2.28 a step.
    """
    mode = evidence.mode
    own = best(of_mode(evidence, mode))
    if mode is None or own is None or shape_of(mode) is Shape.NONE or evidence.observations:
        return None  # On a host the log is of other requests than whatever was measured some day.
    others = [one for one in evidence.speeds if not fits(one.mode, mode) and same_load(one, own)]
    drafting = [one for one in others if shape_of(one.mode) is not Shape.NONE and step_s(one) is not None]
    reference = best(sorted(drafting, key=lambda one: -_apart(one.mode, mode)))
    seconds = None if reference is None else step_s(reference)
    if reference is None or seconds is None:
        return None
    plain = statistics.median([*_plain_steps(others)]) if any(True for _ in _plain_steps(others)) else None
    mine, theirs = checked(mode), checked(reference.mode)
    return Estimate(
        length=per_request(own) * seconds,
        step_s=seconds,
        base_steps=None if plain is None else seconds / plain,
        tokens_s=per_request(own),
        reference=reference,
        at_least=mine is not None and theirs is not None and mine > theirs,
    )


def _apart(one: Mode, other: Mode) -> int:
    """Return by how many verified tokens a step two modes differ; unknown is far."""
    mine, theirs = checked(one), checked(other)
    return 1 << 20 if mine is None or theirs is None else abs(mine - theirs)


def _plain_steps(speeds: Iterable[Speed]) -> Iterable[float]:
    for one in speeds:
        seconds = step_s(one)
        if shape_of(one.mode) is Shape.NONE and seconds is not None:
            yield seconds
