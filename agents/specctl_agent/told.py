"""What the agent says of itself on the control socket, as plain values; ages in seconds instead of moments. Pure."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from specctl.control.mode import Mode
from specctl.control.sample.engine import DecodeSums
from specctl_agent.pictures import Picture, ServerPicture


def told_agent(picture: Picture, servers: Sequence[ServerPicture]) -> dict[str, object]:
    """Return the answer to `status`."""
    nvml = picture.nvml
    answers = nvml is not None and nvml.trouble is None
    return {
        "version": picture.version,
        "ticks": picture.ticks,
        "decisions": picture.decisions,
        "troubles": dict(picture.troubles),
        "collectors": {
            name: _told_collector(health.error, age_s) for name, (health, age_s) in picture.collectors.items()
        },
        "gpus": len(nvml.gpus) if nvml is not None and answers else None,
        "gpu_trouble": nvml.trouble.detail if nvml is not None and nvml.trouble is not None else None,
        "servers": [_told_server(server, picture.at_s) for server in servers],
    }


def told_sources(picture: Picture) -> dict[str, object]:
    """Return the answer to `snapshot`: the newest sample of every source, and what `status` says of each server."""
    servers = {
        server.server: {
            "engine": plain(server.sample),
            "engine_age_s": server.sample_age_s,
            "claims": plain(server.info),
            "status": _told_server(server, picture.at_s),
        }
        for server in picture.servers
    }
    return {
        "version": picture.version,
        "troubles": dict(picture.troubles),
        "nvml": plain(picture.nvml),
        "nvml_age_s": picture.nvml_age_s,
        "host": plain(picture.host),
        "host_age_s": picture.host_age_s,
        "servers": servers,
    }


def _told_collector(error: str | None, age_s: float | None) -> dict[str, object]:
    return {"ok": error is None and age_s is not None, "age_s": age_s, "error": error}


def _told_server(server: ServerPicture, now_s: float) -> dict[str, object]:
    decided, sample, figures = server.decided, server.sample, server.figures
    sums = figures.decoded if figures is not None else None
    return {
        "server": server.server,
        "conduct": server.conduct.value,
        "mode": None if server.mode is None else str(server.mode),
        "told_at": server.told_at,
        "table": server.table,
        "activity": None if sample is None else sample.activity.value,
        "running": None if sample is None else sample.running,
        "waiting": None if sample is None else sample.waiting,
        "concurrency": None if figures is None else figures.concurrency,
        "tokens_per_s": None if sums is None else sums.tokens_s,
        "accept_length": None if sums is None else sums.accept_length,
        "age_s": server.sample_age_s,
        "now": _told_now(server),
        "decision": None
        if decided is None
        else {
            "text": decided.text,
            "rule": decided.rule,
            "reason": decided.reason,
            "at": decided.at,
            "for_s": now_s - decided.since_s,
        },
        "acting": server.acting,
        "held": server.held,
        "pinned": server.pinned,
        "pin_left_s": server.pin_left_s,
        "frozen": server.frozen,
        "findings": list(server.findings),
        "mode_s": dict(server.mode_s),
        "switches": sum(each.count for each in server.switches),
    }


def _told_now(server: ServerPicture) -> dict[str, object] | None:
    """Return the figures of the last seconds for people: of all requests and ranks, idle time included; None without an answer.

    `age_s`: since the engine published what it answered. `tokens_per_s` are those of decode steps, over `over_s`.
    """
    load, now, look_s = server.load, server.now, server.sample_age_s
    if load is None or look_s is None:
        return None
    known = server.sample is not None and server.sample.running is not None
    decoded = now.decoded if now is not None and known else None
    return {
        "running": load.running,
        "waiting": load.waiting,
        "kv_ratio": load.kv_ratio,
        "age_s": None if load.age_s is None else load.age_s + look_s,
        "tokens_per_s": _rate(server, decoded) if known else None,
        "accept_length": None if decoded is None or load.lifetime_accept_length is None else decoded.accept_length,
        "over_s": None if now is None else now.known_s,
    }


def _rate(server: ServerPicture, decoded: DecodeSums | None) -> float | None:
    """Return tokens a second of the last seconds; until two looks give one, 0 where no request runs: no token comes then."""
    if server.now is None or decoded is None or server.now.known_s <= 0:
        return 0.0 if server.load is not None and server.load.running == 0 else None
    return decoded.tokens / server.now.known_s


def plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mode):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [plain(item) for item in value]
    return value
