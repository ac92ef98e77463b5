"""A sight as the JSON that `specctl status --json` prints (docs/json.md); pure. Fields are only added."""

from __future__ import annotations

from dataclasses import asdict

from specctl.control.mode import Mode
from specctl.control.sight import GpuSight, Sight, Told, knobs_of
from specctl.control.sight_words import last_decision, notes


def as_wire(sight: Sight) -> dict[str, object]:
    """Return the JSON object of a sight."""
    mode, last, told = sight.mode, sight.last, _figures(sight)
    return {
        "host": sight.host,
        "server": sight.server,
        "groups": list(sight.groups),
        "state": sight.state,
        "reason": sight.reason,
        "hint": sight.hint,
        "algo": None if mode is None else mode.algo,
        "knobs": {} if mode is None else dict(knobs_of(mode)),
        "desired": _mode(sight.desired),
        "deployed": _mode(sight.deployed),
        "live": _mode(sight.live),
        "live_by": sight.live_by,
        "owned": list(sight.owned),
        "release": sight.release,
        "proven": sight.proven,
        "ready": sight.ready is True,
        "loading": None if sight.loading is None else asdict(sight.loading),
        **{name: None if figure is None else figure.value for name, figure in told.items()},
        "age_s": sight.figures_age_s,
        "figures": {
            name: {"age_s": figure.age_s, "source": figure.source.value, "stale": figure.stale}
            for name, figure in told.items()
            if figure is not None
        },
        "gpus": None if sight.gpus is None else [_gpu(gpu) for gpu in sight.gpus],
        "gpu_trouble": sight.gpu_trouble,
        "agent": None if sight.agent is None else asdict(sight.agent),
        "agent_trouble": sight.agent_trouble,
        "decision": last_decision(sight),
        "note": _note(sight),
        "notes": list(notes(sight)),
        "drift": list(sight.drift),
        "warnings": list(sight.warnings),
        "lease": None if sight.lease is None else asdict(sight.lease),
        "guard": None if sight.guard is None else sight.guard.as_wire(),
        "last_act": None if last is None else last.act,
        "last_at": None if last is None else last.at,
        "last_age_s": None if last is None else last.age_s,
        "last_who": None if last is None else last.who,
        "last_result": None if last is None else last.result,
        "seen_age_s": sight.age_s,
    }


def _figures(sight: Sight) -> dict[str, Told[int] | Told[float] | None]:
    return {
        "running": sight.running,
        "waiting": sight.waiting,
        "tokens_per_s": sight.tokens_per_s,
        "accept_length": sight.accept_length,
        "kv_ratio": sight.kv_ratio,
    }


def _note(sight: Sight) -> str | None:
    reason = (sight.reason,) if sight.reason else ()
    return "; ".join([*reason, *notes(sight)]) or None


def _mode(mode: Mode | None) -> dict[str, object] | None:
    return None if mode is None else {"algo": mode.algo, "knobs": dict(knobs_of(mode))}


def _gpu(gpu: GpuSight) -> dict[str, object]:
    return {**asdict(gpu), "stale": gpu.stale}
