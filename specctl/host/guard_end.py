"""How the guard ends: its record is decided and kept with its state, then written, then the guard removes itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Dict, Mapping, Optional

from specctl.host import guard_files, guard_rules, guard_state, lease, records, releases
from specctl.host.guard_state import ENDED, Goal, GuardState

# The words of rollout/record.py.
ROLLED_BACK = "rolled back"
STOPPED = "stopped: no healthy release"
FAILED = "failed"
WHO = "guard"


def _pair(goal: Optional[Goal]) -> Optional[list]:  # type: ignore[type-arg]  # of two texts, as JSON has it
    return None if goal is None else [goal.id, goal.algo]


def _part(row: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a mapping of a manifest; empty where it is damaged: the record must be written all the same."""
    found = row.get(name)
    return found if isinstance(found, dict) else {}


def _record(
    folder: str, state: GuardState, *, result: str, cause: str, serving: Optional[Goal], load_s: Optional[float]
) -> Mapping[str, object]:
    manifest = releases.manifest(folder, state.aim.id) or {}
    found: Dict[str, object] = {
        "act": state.act,
        "result": result,
        "server": state.server,
        "host": state.host,
        "who": WHO,
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "release": state.aim.id,
        "algo": state.aim.algo,
        "previous": _pair(state.back),
        "serving": _pair(serving),
        "knobs": _part(_part(manifest, "knobs"), state.aim.algo),
        "proof": None,
        "evidence": [],
        "cause": cause,
        "durations_s": {},
        "load_s": None if load_s is None else round(load_s, 3),
        "phases": [],
        "weights_bytes": None,
        "digests": _part(manifest, "files"),
        "invocation": None,
        "specctl": state.version,
    }
    return found


def finished(folder: str, state: GuardState, decision: guard_rules.Finish) -> GuardState:
    """Decide the record of a deploy that was taken back, or that had changed nothing."""
    restored = decision.end == guard_rules.RESTORED
    loaded = restored and state.load_left_s is not None and state.pinned != state.before
    record = _record(
        folder,
        state,
        result=ROLLED_BACK if restored else FAILED,
        cause=decision.reason,
        serving=state.back,
        load_s=state.load_s - (state.load_left_s or 0.0) if loaded else None,
    )
    return _ended(folder, state, record)


def stopped(folder: str, state: GuardState, decision: guard_rules.Stop, *, gone: bool) -> GuardState:
    """Decide the record of a server that was stopped, or could not be."""
    cause = decision.reason if gone else f"{decision.reason}; the server could not be stopped"
    record = _record(folder, state, result=STOPPED if gone else FAILED, cause=cause, serving=None, load_s=None)
    return _ended(folder, state, record)


def _ended(folder: str, state: GuardState, record: Mapping[str, object]) -> GuardState:
    assert state.own is not None, "the guard acts under a lease of its own"
    ended = replace(state, phase=ENDED, record=record)
    with lease.fenced(folder, state.own):
        guard_state.save(folder, ended)
    return ended


def clear(folder: str, state: GuardState, unit_dir: str) -> None:
    """Write the record and remove the guard; the guard's own lease, which keeps others away meanwhile, is given back last."""
    try:
        if state.record is not None:
            records.add(folder, state.record, once=True)
        guard_files.remove(folder, state.server, unit_dir, from_within=True)
    finally:
        if state.own is not None:
            lease.release(folder, state.own)
