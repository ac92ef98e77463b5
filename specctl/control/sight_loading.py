"""How far a load has come, from what this start has logged and how long past ones took: one look of the gate's fold; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specctl.control.sight import Loading
from specctl.engines._log_types import LogGrammar
from specctl.fleet.types import Server
from specctl.rollout import gate, loadlog
from specctl.rollout.facts import ServerFacts
from specctl.rollout.gate_types import GateSpec
from specctl.rollout.observation import Observation


def loading(
    grammar: LogGrammar, server: Server, facts: ServerFacts, opening: Sequence[str], started_s: float | None
) -> Loading:
    """Return a load's phase, progress and time left; `started_s` is on the clock of the facts.

    One look does not tell when its phase began, so that the time left goes by whole past loads.
    """
    if started_s is None or facts.now_s is None or facts.current is None:
        return Loading(phase="start")
    past = tuple(replace(load, phases=()) for load in facts.past_loads(facts.current.algo))
    spec = GateSpec(
        grammar=grammar,
        started_at_s=started_s,
        load_s=server.limits.load_s,
        stall_s=server.limits.stall_s,
        invocation=facts.unit.invocation,
        restarts=facts.unit.restarts,
        port=server.port,
        has_draft=server.draft is not None,
        past_loads=past,
    )
    look = Observation(at_s=facts.now_s, unit=facts.unit, port=facts.port, lines=tuple(opening))
    state = gate.advance(spec, gate.begin(spec), look)
    cause = loadlog.cause(grammar, state.scan)
    return Loading(
        phase=state.phase.label,
        elapsed_s=state.elapsed_s,
        progress=state.progress,
        detail=state.detail,
        eta_s=state.eta_s,
        fatal=None if cause is None else cause.title,
    )
