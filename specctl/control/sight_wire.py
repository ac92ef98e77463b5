"""A sight as the JSON that `specctl status --json` prints (docs/json.md); pure. Fields are only added."""

from __future__ import annotations

from specctl.control.mode import Mode
from specctl.control.sight import AgentSight, GpuSight, Loading, Sight, Told, knobs_of
from specctl.control.sight_words import last_decision, notes
from specctl.rollout.facts import Lease


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
        "loading": None if sight.loading is None else _loading(sight.loading),
        **{name: None if figure is None else figure.value for name, figure in told.items()},
        "age_s": sight.figures_age_s,
        "figures": {
            name: {"age_s": figure.age_s, "source": figure.source.value, "stale": figure.stale}
            for name, figure in told.items()
            if figure is not None
        },
        "gpus": None if sight.gpus is None else [_gpu(gpu) for gpu in sight.gpus],
        "gpu_trouble": sight.gpu_trouble,
        "agent": None if sight.agent is None else _agent(sight.agent),
        "agent_trouble": sight.agent_trouble,
        "decision": last_decision(sight),
        "note": _note(sight),
        "notes": list(notes(sight)),
        "drift": list(sight.drift),
        "warnings": list(sight.warnings),
        "lease": None if sight.lease is None else _lease(sight.lease),
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


def _lease(lease: Lease) -> dict[str, object]:
    return {
        "owner": lease.owner,
        "reason": lease.reason,
        "age_s": lease.age_s,
        "remaining_s": lease.remaining_s,
    }


def _mode(mode: Mode | None) -> dict[str, object] | None:
    return None if mode is None else {"algo": mode.algo, "knobs": dict(knobs_of(mode))}


def _loading(load: Loading) -> dict[str, object]:
    return {
        "phase": load.phase,
        "elapsed_s": load.elapsed_s,
        "progress": load.progress,
        "detail": load.detail,
        "eta_s": load.eta_s,
        "fatal": load.fatal,
    }


def _gpu(gpu: GpuSight) -> dict[str, object]:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "model": gpu.model,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_total_bytes": gpu.memory_total_bytes,
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "busy_ratio": gpu.busy_ratio,
        "temperature_c": gpu.temperature_c,
        "sm_clock_hz": gpu.sm_clock_hz,
        "sm_clock_max_hz": gpu.sm_clock_max_hz,
        "memory_clock_hz": gpu.memory_clock_hz,
        "throttles": None if gpu.throttles is None else [reason.value for reason in gpu.throttles],
        "slowing": None if gpu.slowing is None else [reason.value for reason in gpu.slowing],
        "age_s": gpu.age_s,
        "source": gpu.source.value,
        "stale": gpu.stale,
    }


def _agent(agent: AgentSight) -> dict[str, object]:
    decision = agent.decision
    return {
        "version": agent.version,
        "conduct": agent.conduct,
        "decision": None
        if decision is None
        else {
            "text": decision.text,
            "rule": decision.rule,
            "reason": decision.reason,
            "at": decision.at,
            "for_s": decision.for_s,
        },
        "acting": agent.acting,
        "pinned": agent.pinned,
        "pin_left_s": agent.pin_left_s,
        "held": agent.held,
        "frozen": agent.frozen,
        "findings": list(agent.findings),
        "troubles": dict(agent.troubles),
    }
