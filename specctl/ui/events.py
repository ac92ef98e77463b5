"""The events that `--json` prints while something goes on, one object a line (docs/json-events.md). Fields are only ever added."""

from __future__ import annotations

from typing import assert_never

from specctl.rollout.gate_types import Dead, Failed, GateState, Loading, Ready, Slow, Stalled, TimedOut, Verdict
from specctl.rollout.story import kind


def gate_event(host: str, state: GateState) -> dict[str, object]:
    """Return a load's event."""
    return {
        "event": "gate",
        "host": host,
        "phase": state.phase.value,
        "progress": _rounded(state.progress, 4),
        "detail": state.detail,
        "elapsed_s": _rounded(state.elapsed_s),
        "eta_s": _rounded(state.eta_s),
        "quiet_s": _rounded(state.quiet_s),
        "verdict": {"kind": kind(state), **_verdict(state.verdict)},
        "phases": [
            {"phase": span.phase.value, "began_s": _rounded(span.began_s), "took_s": _rounded(span.took_s)}
            for span in state.phases
        ],
        "notes": [{"id": hit.text.id, "title": hit.title} for hit in state.notes],
    }


def step_event(host: str, name: str, text: str) -> dict[str, object]:
    """Return the event of a step that is under way."""
    return {"event": "step", "host": host, "name": name, "text": text}


def final_event(host: str, name: str, text: str) -> dict[str, object]:
    """Return the event of something that stays said."""
    return {"event": "final", "host": host, "name": name, "text": text}


def _verdict(verdict: Verdict) -> dict[str, object]:
    match verdict:
        case Loading():
            return {}
        case Slow(usual_s=usual, over_s=over):
            return {"usual_s": _rounded(usual), "over_s": _rounded(over)}
        case Ready(took_s=took):
            return {"took_s": _rounded(took)}
        case Dead(how=how, exit_status=status):
            return {"how": how.value, "exit_status": status}
        case Failed():
            return {
                "id": verdict.fatal,
                "title": verdict.title,
                "cause": list(verdict.cause),
                "remedy": verdict.remedy,
                "exit_status": verdict.exit_status,
            }
        case Stalled(for_s=quiet, watched=watched):
            return {"for_s": _rounded(quiet), "watched": [{"name": each.name, "value": each.value} for each in watched]}
        case TimedOut(after_s=after, moving=moving):
            return {"after_s": _rounded(after), "moving": list(moving)}
        case _:
            assert_never(verdict)


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)
