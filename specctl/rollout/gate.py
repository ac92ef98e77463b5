"""The health gate of a model load: a pure fold of observations into a phase, an estimate and, in the end, a verdict.

`begin` when the start was ordered, `advance` with each look of the watcher, `conclude` when no look will come any more. A final
verdict stays. No clock is read: `now` is the observation's. The rules are in docs/gate.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from specctl.engines._log_types import LogGrammar
from specctl.rollout import eta, loadlog, progress, signals
from specctl.rollout.gate_types import (
    Dead,
    Failed,
    GateSpec,
    GateState,
    How,
    Loading,
    Phase,
    PhaseSpan,
    Ready,
    Slow,
    Stalled,
    TimedOut,
    Verdict,
)
from specctl.rollout.observation import Observation, Port, UnitState

UNLISTED = "F900"
UNLISTED_TITLE = "an error that specctl has no entry for"
_MAX_TITLE = 120
UNLISTED_REMEDY = "read the lines above it: `specctl logs --host H`; then search the engine's issues for the message"
_READY_STATUS = 200
_GONE_STATES = frozenset({"failed", "inactive", "deactivating"})
_RESTARTING = "auto-restart"
_MOVING_WITHIN_S = 30.0
_SLOW_FACTOR = 1.1
_SLOW_MARGIN_S = 5.0


def begin(spec: GateSpec) -> GateState:
    """Return what the gate knows before the first look."""
    return GateState(
        at_s=spec.started_at_s,
        elapsed_s=0.0,
        verdict=Loading(),
        phases=(PhaseSpan(phase=Phase.START, began_s=0.0),),
        signals=signals.begin(spec.started_at_s),
        eta_s=eta.remaining_s(spec, elapsed_s=0.0, phase=Phase.START, phase_elapsed_s=0.0, progress=None),
        invocation=spec.invocation,
        restarts=spec.restarts,
    )


def advance(spec: GateSpec, state: GateState, observation: Observation) -> GateState:
    """Return what the gate knows after one more look."""
    if state.is_final:
        return state
    at_s = max(state.at_s, observation.at_s) if math.isfinite(observation.at_s) else state.at_s
    state = replace(state, at_s=at_s, elapsed_s=max(at_s - spec.started_at_s, 0.0))
    changed = _changed(state, observation.unit)
    if changed is None:  # another invocation's lines say nothing about this one
        state = _look(spec, state, observation)
    return _finish(spec, replace(state, verdict=_judge(spec, state, observation, changed)))


def conclude(spec: GateSpec, state: GateState) -> GateState:
    """Return the verdict on what is known, when the watcher will not look again; unchanged where nothing is wrong."""
    if state.is_final or (state.gone is None and state.failing_since_s is None):
        return state
    return _finish(spec, replace(state, verdict=_explained(spec.grammar, state) or state.gone or state.verdict))


def last_words(spec: GateSpec, state: GateState, lines: Sequence[str]) -> GateState:
    """Return a death without a name with the cause that later lines of its log give; unchanged where they give none."""
    if not isinstance(state.verdict, Dead) or state.verdict.how is not How.GONE:
        return state
    state = replace(state, scan=loadlog.read(spec.grammar, state.scan, tuple(lines)))
    found = _explained(spec.grammar, state)
    return state if found is None else _finish(spec, replace(state, verdict=found))


def _look(spec: GateSpec, state: GateState, seen: Observation) -> GateState:
    """Fold in what an observation says, all but the verdict."""
    scan = loadlog.read(spec.grammar, state.scan, seen.lines)
    now = progress.figures(seen, state.last)
    base = progress.filled(state.base, now)
    found = progress.phase_of(spec, scan, seen, base=base, now=now, own=seen.port is Port.OWN)
    phases = _spans(state, scan.entered, found)
    if phases[-1].phase is not state.phase and phases[-1].phase is scan.phase:
        base = progress.filled(state.last, now)  # growth counts from where the log says that the phase began
    estimate = progress.estimate(spec, phases[-1].phase, scan, base=base, now=now)
    gone = state.gone or _gone(state, seen)
    return replace(
        state,
        scan=scan,
        base=base,
        last=now,
        phases=phases,
        progress=estimate.ratio,
        detail=estimate.detail,
        signals=signals.watch(state.signals, seen, scan, phases[-1].phase, state.at_s),
        invocation=state.invocation or seen.unit.invocation,
        restarts=seen.unit.restarts if state.restarts is None else state.restarts,
        processes=state.processes if seen.processes is None else seen.processes,
        failing_since_s=state.at_s if scan.failing and state.failing_since_s is None else state.failing_since_s,
        gone=_with_status(gone, seen.unit),
        gone_since_s=state.at_s if gone is not None and state.gone_since_s is None else state.gone_since_s,
    )


def _judge(spec: GateSpec, state: GateState, seen: Observation, changed: How | None) -> Verdict:
    if changed is not None:
        dead = Dead(how=changed, exit_status=state.gone.exit_status if state.gone else None)
        return _explained(spec.grammar, replace(state, gone=dead)) or dead
    if state.gone is not None:
        return _of_the_dead(spec, state, seen)
    if seen.port is Port.FOREIGN:
        return _foreign(spec)
    if seen.port is Port.OWN and seen.ready == _READY_STATUS and not state.scan.collapsed:
        return Ready(took_s=state.elapsed_s)
    if state.failing_since_s is not None and state.at_s - state.failing_since_s >= spec.grace_s:
        return _explained(spec.grammar, state) or state.verdict
    return _of_the_living(spec, state)


def _of_the_living(spec: GateSpec, state: GateState) -> Verdict:
    if state.elapsed_s >= spec.load_s:
        if state.failing_since_s is not None:
            return _explained(spec.grammar, state) or state.verdict
        moving = signals.moving(state.signals, state.at_s, _MOVING_WITHIN_S)
        return TimedOut(after_s=state.elapsed_s, phase=state.phase, moving=moving)
    if state.quiet_s >= spec.stall_s and signals.can_stall(state.signals):
        return Stalled(for_s=state.quiet_s, watched=signals.watched(state.signals))
    usual = eta.usual_s(spec)
    if usual is not None and state.elapsed_s > usual * _SLOW_FACTOR + _SLOW_MARGIN_S:
        return Slow(usual_s=usual, over_s=state.elapsed_s - usual)
    return Loading()


def _of_the_dead(spec: GateSpec, state: GateState, seen: Observation) -> Verdict:
    """Name the cause of a death; wait a moment for the last lines where none is known yet."""
    named = loadlog.cause(spec.grammar, state.scan)
    since = state.at_s if state.gone_since_s is None else state.gone_since_s
    if named is None and not seen.journal_lost and state.at_s - since < spec.settle_s:
        return state.verdict
    return _explained(spec.grammar, state) or state.gone or state.verdict


def _explained(grammar: LogGrammar, state: GateState) -> Failed | None:
    """Return the failure that the log names: a known cause, else the last uncaught error, else a consequence.

    An error without any sign that the start failed is only believed of a process that is gone.
    """
    status = state.gone.exit_status if state.gone else None
    hit = loadlog.cause(grammar, state.scan)
    if hit is None and state.scan.error and (state.gone is not None or state.scan.collapsed):
        said = state.scan.error[0][:_MAX_TITLE]
        return Failed(
            fatal=UNLISTED,
            title=f"{UNLISTED_TITLE}: {said}",
            cause=state.scan.error,
            remedy=UNLISTED_REMEDY,
            exit_status=status,
        )
    hit = hit or loadlog.consequence(grammar, state.scan)
    if hit is None:
        return None
    return Failed(fatal=hit.text.id, title=hit.title, cause=hit.lines, remedy=hit.text.remedy, exit_status=status)


def _foreign(spec: GateSpec) -> Failed:
    known = spec.grammar.text(spec.grammar.port_taken)
    port = "the port" if spec.port is None else f"port {spec.port}"
    return Failed(
        fatal=spec.grammar.port_taken,
        title=f"{port} is taken",
        cause=(
            f"{port} is held by a process that does not belong to this server (seen on the host, not said by the engine)",
        ),
        remedy=known.remedy if known else "stop the process that holds the port, or give the server another port",
    )


def _changed(state: GateState, unit: UnitState) -> How | None:
    if state.invocation is not None and unit.invocation is not None and unit.invocation != state.invocation:
        return How.INVOCATION
    if state.restarts is not None and unit.restarts is not None and unit.restarts != state.restarts:
        return How.RESTARTS
    return None


def _gone(state: GateState, seen: Observation) -> Dead | None:
    unit = seen.unit
    restarting = unit.sub is not None and unit.sub.startswith(_RESTARTING)
    vanished = unit.active is None and seen.processes == 0 and bool(state.processes)
    if unit.active in _GONE_STATES or restarting or vanished:
        return Dead(how=How.GONE, exit_status=unit.exit_status)
    return None


def _with_status(gone: Dead | None, unit: UnitState) -> Dead | None:
    if gone is None or gone.exit_status is not None:
        return gone
    return replace(gone, exit_status=unit.exit_status)


def _spans(state: GateState, entered: tuple[Phase, ...], found: Phase) -> tuple[PhaseSpan, ...]:
    """Return the phases so far: those that the log says began, then the one that other signs prove; never backwards."""
    spans = list(state.phases)
    for phase in (*entered, found):
        if phase.place > spans[-1].phase.place:
            spans[-1] = _closed(spans[-1], state.elapsed_s)
            spans.append(PhaseSpan(phase=phase, began_s=state.elapsed_s))
    return tuple(spans)


def _closed(span: PhaseSpan, at_s: float) -> PhaseSpan:
    return replace(span, took_s=max(at_s - span.began_s, 0.0))


def _finish(spec: GateSpec, state: GateState) -> GateState:
    """Set what depends on the verdict: the last phase, and when it will be over."""
    if isinstance(state.verdict, Ready):
        done = (*state.phases[:-1], _closed(state.phases[-1], state.elapsed_s))
        ready = PhaseSpan(phase=Phase.READY, began_s=state.elapsed_s, took_s=0.0)
        return replace(state, phases=(*done, ready), progress=1.0, detail=None, eta_s=0.0)
    if state.is_final:
        return replace(state, phases=(*state.phases[:-1], _closed(state.phases[-1], state.elapsed_s)), eta_s=None)
    left = eta.remaining_s(
        spec,
        elapsed_s=state.elapsed_s,
        phase=state.phase,
        phase_elapsed_s=state.elapsed_s - state.phases[-1].began_s,
        progress=state.progress,
    )
    return replace(state, eta_s=left)
