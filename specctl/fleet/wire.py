"""A resolved host and its servers as plain values, for `--json` and for people; references to secrets, never secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specctl.fleet.types import AgentSettings, Host, Model, Origin, Server

Value = None | bool | int | float | str | Sequence["Value"] | Mapping[str, "Value"]


def host_values(host: Host) -> dict[str, Value]:
    """Return what the inventory says of a host, by the keys of the inventory; servers by name alone."""
    hardware = host.hardware
    return {
        "name": host.name,
        "connect": {
            "via": host.via.value,
            "address": host.address,
            "user": host.user,
            "port": host.port,
            "identity_file": host.identity_file,
            "sudo": host.sudo,
        },
        "service_manager": host.manager.value,
        "state_dir": str(host.state_dir),
        "python": host.python,
        "groups": list(host.groups),
        "hardware": None
        if hardware is None
        else {
            "name": hardware.name,
            "gpu_model": hardware.gpu_model,
            "gpu_count": hardware.gpu_count,
            "gpu_memory_bytes": hardware.gpu_memory_bytes,
            "interconnect": hardware.interconnect,
            "verify_cliff_tokens": hardware.verify_cliff_tokens,
            "note": hardware.note,
        },
    }


def server_values(server: Server) -> dict[str, Value]:
    """Return a server by the keys of the inventory, options in the order to be rendered."""
    return {
        "name": server.name,
        "engine": server.profile.name,
        "target": model_values(server.target),
        "draft": None if server.draft is None else model_values(server.draft),
        "algo": server.algo,
        "algos": list(server.profile.algos),
        "knobs": {algo: dict(knobs) for algo, knobs in server.knobs.items()},
        "port": server.port,
        "bind": server.bind,
        "python": server.python,
        "tp": server.tp,
        "gpus": list(server.gpus),
        "cuda_home": server.cuda_home,
        "served_name": server.served_name,
        "working_dir": server.working_dir,
        "options": {name: list(value) if isinstance(value, tuple) else value for name, value in server.options.items()},
        "env": dict(server.env),
        "secrets": {name: str(reference) for name, reference in server.secrets.items()},
        "limits": {
            "load_s": server.limits.load_s,
            "drain_s": server.limits.drain_s,
            "stop_s": server.limits.stop_s,
            "stall_s": server.limits.stall_s,
            "smoke_s": server.limits.smoke_s,
            "guard_s": server.limits.guard_s,
            "confirm_s": server.limits.confirm_s,
        },
        "unit": {
            "user": server.unit.user,
            "memory_max": server.unit.memory_max,
            "restart": server.unit.restart,
            "extra": {name: [v for n, v in server.unit.extra if n == name] for name, _ in server.unit.extra},
        },
        "waivers": {waiver.rule: waiver.reason for waiver in server.waivers},
        "agent": agent_values(server.agent),
    }


def agent_values(agent: AgentSettings) -> dict[str, Value]:
    """Return what the agent may do, by the keys of the inventory."""
    gateway, hooks = agent.gateway, agent.hooks
    return {
        "mode": agent.mode.value,
        "objective": agent.objective.value,
        "floor": agent.floor_tokens_per_s,
        "algos": list(agent.algos),
        "knobs": {algo: {name: list(pair) for name, pair in knobs.items()} for algo, knobs in agent.knobs.items()},
        "min_dwell_s": agent.min_dwell_s,
        "switches_a_day": agent.switches_a_day,
        "outage_ok": agent.outage_ok,
        "gateway": None
        if gateway is None
        else {
            "kind": gateway.kind,
            "url": gateway.url,
            "worker": gateway.worker,
            "api_key": None if gateway.api_key is None else str(gateway.api_key),
        },
        "hooks": None
        if hooks is None
        else {"pre_drain": list(hooks.pre_drain), "post_ready": list(hooks.post_ready), "limit_s": hooks.limit_s},
        "calibration": agent.calibration,
        "table": agent.table,
        "model_class": agent.model_class,
        "context": None if agent.context_tokens is None else list(agent.context_tokens),
    }


def model_values(model: Model) -> dict[str, Value]:
    """Return a model."""
    return {
        "name": model.name,
        "path": model.path,
        "size_bytes": model.size_bytes,
        "block_size": model.block_size,
        "target": model.target,
    }


def origin_values(provenance: Mapping[str, Origin]) -> dict[str, Value]:
    """Return where each value came from, by its dotted path."""
    return {
        path: {"layer": origin.layer, "file": origin.file, "line": origin.line, "column": origin.column}
        for path, origin in provenance.items()
    }


def flat(values: Mapping[str, Value], prefix: str = "") -> dict[str, Value]:
    """Return nested values by dotted path; a list stays one value, an empty mapping none."""
    found: dict[str, Value] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found
