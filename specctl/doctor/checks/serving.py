"""How the engine serves: graphs or eager, the overlap scheduler, a queue that grows, a scheduler that stands still."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from specctl.control.sample.engine import FROZEN_AFTER_S
from specctl.doctor import basis, decide, windows
from specctl.doctor.evidence import OWN_RUN, Evidence, Observation, Pair
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity

OVERLAP_OFF = "--disable-overlap-schedule"
SLOWER = 1.5
"""Another context or prompt moves a step by less; no source, a choice."""
SAME_BATCH = 0.5
LEAST_LOOKS = 3
LEAST_SPAN_S = 2.0


def _eager(evidence: Evidence) -> Verdict:
    """Find decode lines without a CUDA graph: batches beyond the captured ones run eagerly."""
    lines = () if evidence.log is None else evidence.log.windows
    judged = [one for one in lines if one.decode is not None and one.decode.graph is not None]
    if not judged:
        is_cpu = any(one.decode is not None for one in lines)
        return Beside() if is_cpu else Unsure(reason="no decode line was seen", decide=decide.LOAD)
    eager = [one for one in judged if one.decode is not None and one.decode.graph is False]
    if not eager:
        return Clear(note=f"{len(judged)} decode lines with graphs")
    batches, most = _batches(eager), max(_batches([one for one in judged if one not in eager]), default=None)
    words = f"batches of {_few(batches)}" if batches else "batches"
    above = most is not None and batches and min(batches) > most
    return Hit(
        message=f"{len(eager)} of {len(judged)} decode lines say cuda graph: False, at {words}"
        + (f"; graphs were seen up to {most}" if above else ""),
        remedy=f"Raise --cuda-graph-max-bs-decode to {max(batches)}, as far as memory goes." if above else None,
    )


def _batches(lines: Sequence[Pair]) -> list[int]:
    return sorted({one.decode.running for one in lines if one.decode is not None and one.decode.running is not None})


def _few(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _overlap(evidence: Evidence) -> Verdict:
    """Find the overlap scheduler off: as the algo implies, or for nothing."""
    told = evidence.configuration.overlap
    if evidence.no_gpus:
        return Beside()
    if told is None:
        return Unsure(reason="/server_info does not say whether the overlap scheduler runs", decide=decide.ANSWERS)
    if told:
        return Clear(note="overlap is on")
    if OVERLAP_OFF in evidence.configuration.implied:
        return Hit(
            message=f"overlap is off, as {evidence.mode.algo if evidence.mode else 'the algo'} needs it in this build",
            severity=Severity.NOTE,
            remedy="Count it when chain and tree are compared: specctl ab offers the chain without overlap as a third arm.",
        )
    return Hit(message="overlap is off, and nothing that runs here needs it off")


def _queue(evidence: Evidence) -> Verdict:
    """Find a queue that only grows while we look."""
    told = [(one.at_s, count) for one in evidence.observations if (count := _waiting(one)) is not None]
    if len(told) < LEAST_LOOKS or told[-1][0] - told[0][0] < LEAST_SPAN_S:
        return Unsure(reason=f"fewer than {LEAST_LOOKS} looks at the queue", decide=decide.ANSWERS)
    counts = [count for _, count in told]
    grows = all(later >= sooner for sooner, later in pairwise(counts)) and counts[-1] > counts[0] > 0
    if not grows:
        return Clear(note=f"{counts[-1]} waiting")
    last = evidence.observations[-1]
    load = None if last.look is None else last.look.load
    full = (
        load is not None
        and load.running is not None
        and load.max_running is not None
        and load.running >= load.max_running
    )
    span = told[-1][0] - told[0][0]
    return Hit(
        message=f"{counts[0]} to {counts[-1]} requests wait, more at each of {len(told)} looks in {span:.0f} s"
        + (f"; all {load.max_running} places are taken" if full and load is not None else ""),
        evidence=(f"waiting: {', '.join(str(count) for count in counts)}",),
    )


def _waiting(one: Observation) -> int | None:
    return None if one.look is None else one.look.load.waiting


def _stands_still(evidence: Evidence) -> Verdict:
    """Find a scheduler that answers with old figures: hung, or paused in place (recordings, surprise 14)."""
    ages = [(one, one.look.load.age_s) for one in evidence.observations if one.look is not None]
    told = [(one, age) for one, age in ages if age is not None]
    if not told:
        return Unsure(reason="/v1/loads did not say how old its figures are", decide=decide.ANSWERS)
    last, age = told[-1]
    if age <= FROZEN_AFTER_S:
        return Clear(note=f"published {age:.1f} s before")
    running = None if last.look is None else last.look.load.running
    moved = windows.counters_move(told[0][0], last)
    return Hit(
        message=f"the scheduler published its last figures {age:.0f} s ago, with {running or 'no'} requests running",
        evidence=() if moved is None else (f"{moved:.0f} tokens between the first and the last look",),
    )


def _slow_steps(evidence: Evidence) -> Verdict:
    """Hold the present step time against the one measured in this mode at this load."""
    window = windows.recent(evidence)
    decoded = [one.decoded for one in window.samples if one.decoded is not None and one.decoded.steps > 0]
    if basis.shape_of(evidence.mode) is None or not decoded:
        return Unsure(reason="no decode steps were counted while we looked", decide=decide.LOAD)
    sums = sum(decoded[1:], decoded[0])
    batch, now = sums.batch, sums.step_s
    past = [
        one for one in basis.of_mode(evidence, evidence.mode) if one.run != OWN_RUN and basis.step_s(one) is not None
    ]
    near = [one for one in past if batch is not None and abs((one.concurrency or 0.0) - batch) <= SAME_BATCH]
    if not near or now is None or sums.steps < basis.LEAST_STEPS:
        return Unsure(
            reason="no step time of this mode and batch to compare with",
            decide=decide.BENCH,
        )
    known = basis.step_s(near[-1]) or 0.0
    if now <= known * SLOWER:
        return Clear(note=f"{now * 1000:.1f} ms a step, {known * 1000:.1f} ms by {near[-1].run or 'the figures'}")
    return Hit(
        message=f"a step takes {now * 1000:.1f} ms at batch {batch:.1f}; in {near[-1].run or 'the figures'} {known * 1000:.1f}",
        evidence=(f"{sums.steps:.0f} steps while we looked",),
    )


CHECKS = CheckSet(
    name="serving",
    title="How the engine serves",
    checks=(
        Check(
            id="S003",
            title="decoding falls back to eager",
            meaning="Without a CUDA graph each kernel is launched one by one: steps are slower, small batches most of all.",
            looks_at="cuda graph: False in decode lines (a CPU server's cpu graph: False is none)",
            effect="steps are slower",
            remedy="Take disable-cuda-graph out; look for N003 in the log, and for memory too short to capture.",
            severity=Severity.WARNING,
            judge=_eager,
        ),
        Check(
            id="S004",
            title="the overlap scheduler is off",
            meaning="Without overlap the CPU's work of a step is not hidden behind the GPU's.",
            looks_at="disable_overlap_schedule in /server_info, and what the algo's profile implies",
            effect="each step is longer by the scheduler's own time",
            remedy="Take disable-overlap-schedule out of the options.",
            severity=Severity.WARNING,
            judge=_overlap,
        ),
        Check(
            id="S009",
            title="the queue grows",
            meaning="More requests come than are served: waiting times grow without end.",
            looks_at="waiting requests at each look (/v1/loads)",
            effect="none on tokens; each request waits longer",
            remedy="Raise max-running-requests as far as the KV pool goes, add a server, or send less.",
            severity=Severity.WARNING,
            judge=_queue,
        ),
        Check(
            id="S010",
            title="the scheduler stands still",
            meaning="The engine answers, and its scheduler has published nothing for long: hung, or paused in place.",
            looks_at="age of what /v1/loads tells",
            effect="no tokens come",
            remedy="Continue a paused engine (POST /continue_generation); else restart it (specctl restart --host H).",
            severity=Severity.ERROR,
            judge=_stands_still,
        ),
        Check(
            id="S011",
            title="steps are slower than they were measured",
            meaning="The same mode and batch took less time a step in an earlier bench or calibration of this server.",
            looks_at="seconds a decode step now beside those of a run at the same concurrency",
            effect="fewer tokens a second than this server has shown",
            remedy="See S003 to S008; compare context lengths with the run's.",
            severity=Severity.WARNING,
            judge=_slow_steps,
        ),
    ),
)
