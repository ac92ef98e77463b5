"""Make the metric audit's input of the doctor's evidence: the moments between our looks, and all the time since the start.

Pure. The agent audits five minutes of looks each second; the doctor has a few looks, and the engine's own sums since its start,
which are a window too where the mode has not changed in it.
"""

from __future__ import annotations

from dataclasses import replace

from specctl.control.audit_types import AuditInput
from specctl.control.sample.engine import (
    NO_STEPS,
    Activity,
    Counted,
    EngineCounters,
    EngineLines,
    EngineSample,
    TreeLine,
)
from specctl.control.sample.engine_track import EngineTrack, advance
from specctl.control.window import Window, observe
from specctl.doctor import basis
from specctl.doctor.evidence import Evidence, Observation

FOR_EVER_S = 1e9


def inputs(evidence: Evidence) -> tuple[tuple[str, AuditInput], ...]:
    """Return what the audit can be asked, each with the time that it is of, in words; the longest first."""
    given = AuditInput(
        mode=evidence.mode,
        counters=basis.counted(evidence),
        lines=None if evidence.log is None else evidence.log.engine,
        has_tree_line=evidence.has_tree_line,
        counts_root=evidence.counts_root,
        counts_bonus=evidence.counts_bonus,
        same_start=evidence.same_start,
    )
    since_start, lately = lifetime(evidence), recent(evidence)
    found = []
    if since_start.samples:
        found.append(("since the start", replace(given, window=since_start)))
    if lately.samples:
        span = lately.samples[-1].at_s - lately.samples[0].at_s
        found.append((f"in the last {span:.0f} s", replace(given, window=lately)))
    return tuple(found) or (("", given),)


def with_line(given: AuditInput, line: TreeLine) -> AuditInput:
    """Return the input as if the log had just said one tree line."""
    lines = given.lines or EngineLines()
    return replace(given, lines=replace(lines, last_tree=line, last_is_tree=True, since_tree=0, tree_lines=1))


def recent(evidence: Evidence) -> Window:
    """Return the window of our own looks, folded as the agent folds its own."""
    track, window = EngineTrack(), Window(horizon_s=FOR_EVER_S)
    for one in evidence.observations:
        track, sample = advance(track, at_s=one.at_s, look=one.look, page=one.page, mode=evidence.mode)
        window = observe(window, sample)
    return window


def lifetime(evidence: Evidence) -> Window:
    """Return one sample from the start to the newest look; empty where the start, or what ran since, is not known."""
    newest = next((one for one in reversed(evidence.observations) if one.look is not None), None)
    if newest is None or newest.look is None or evidence.started_s is None or not evidence.steady:
        return Window(horizon_s=FOR_EVER_S)
    span = newest.at_s - evidence.started_s
    load = newest.look.load
    if span <= 0:
        return Window(horizon_s=FOR_EVER_S)
    first = EngineSample(
        at_s=evidence.started_s,
        span_s=None,
        activity=Activity.ACTIVE,
        mode=evidence.mode,
        decoded=NO_STEPS,
        counted=_gained(EngineCounters(), 0.0),
    )
    last = EngineSample(
        at_s=newest.at_s,
        span_s=span,
        activity=Activity.ACTIVE,
        running=load.running,
        waiting=load.waiting,
        max_running=load.max_running,
        mode=evidence.mode,
        decoded=load.decoded,
        ranks=max(load.ranks, 1),
        counted=_newest_counts(evidence, span),
    )
    return Window(horizon_s=FOR_EVER_S, samples=(first, last))


def _newest_counts(evidence: Evidence, span_s: float) -> Counted | None:
    counters = basis.counted(evidence)
    return None if counters is None else _gained(counters, span_s)


def _gained(counters: EngineCounters, span_s: float) -> Counted:
    return Counted(
        span_s=span_s,
        decode_tokens=counters.decode_tokens,
        generated_tokens=counters.generated_tokens,
        verify_calls=counters.verify_calls,
        requests=counters.requests,
    )


def counters_move(before: Observation, after: Observation) -> float | None:
    """Return the tokens that were decoded between two looks, by counters, else by sums of steps; None where neither tells."""
    if before.page is not None and after.page is not None:
        now, then = after.page.counters.decode_tokens, before.page.counters.decode_tokens
        if now is not None and then is not None and now >= then:
            return now - then
    sums = [one.look.load.decoded if one.look is not None else None for one in (before, after)]
    if sums[0] is None or sums[1] is None:
        return None
    gained = sums[1].since(sums[0])
    return None if gained is None else gained.tokens


def steps_between(before: Observation, after: Observation) -> float | None:
    """Return the decode steps between two looks; None where the engine's sums do not tell."""
    if before.look is None or after.look is None:
        return None
    then, now = before.look.load.decoded, after.look.load.decoded
    gained = None if then is None or now is None else now.since(then)
    return None if gained is None else gained.steps
