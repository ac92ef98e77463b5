"""Build what the agent may do with a server from merged leaves; called by fleet/build.py, all has been checked."""

from __future__ import annotations

from specctl.fleet import units
from specctl.fleet.layers import Leaves
from specctl.fleet.types import AgentMode, AgentSettings, Gateway, Hooks, Objective, SecretRef, SecretSource

AGENT = "agent"


def agent(leaves: Leaves) -> AgentSettings:
    """Build the settings of one server's agent."""
    return AgentSettings(
        mode=AgentMode(_said(leaves, "mode")),
        objective=Objective(_said(leaves, "objective")),
        floor_tokens_per_s=_number(leaves, "floor"),
        algos=_texts(leaves, "algos"),
        knobs=_knobs(leaves),
        min_dwell_s=_seconds(leaves, "min_dwell"),
        switches_a_day=int(str(_said(leaves, "switches_a_day"))),
        outage_ok=_said(leaves, "outage_ok") is True,
        gateway=_gateway(leaves),
        hooks=_hooks(leaves),
        calibration=_text(leaves, "calibration"),
        table=_said(leaves, "table") is True,
        model_class=_text(leaves, "model_class"),
        context_tokens=_pair(_said(leaves, "context")),
    )


def _said(leaves: Leaves, *path: str) -> object:
    leaf = leaves.get((AGENT, *path))
    return None if leaf is None else leaf.value


def _text(leaves: Leaves, *path: str) -> str | None:
    value = _said(leaves, *path)
    return None if value is None else str(value)


def _number(leaves: Leaves, *path: str) -> float | None:
    value = _said(leaves, *path)
    return None if value is None else float(str(value))


def _seconds(leaves: Leaves, *path: str) -> float:
    value = _said(leaves, *path)
    return units.seconds(value) if isinstance(value, str) else float(str(value))


def _texts(leaves: Leaves, *path: str) -> tuple[str, ...]:
    value = _said(leaves, *path)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _pair(value: object) -> tuple[int, int] | None:
    if not isinstance(value, list):
        return None
    low, high = value
    return int(low), int(high)


def _knobs(leaves: Leaves) -> dict[str, dict[str, tuple[int, int]]]:
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for path, leaf in leaves.items():
        if path[:2] == (AGENT, "knobs") and len(path) == 4 and (pair := _pair(leaf.value)) is not None:
            found.setdefault(path[2], {})[path[3]] = pair
    return found


def _gateway(leaves: Leaves) -> Gateway | None:
    kind, url, worker = (_text(leaves, "gateway", key) for key in ("kind", "url", "worker"))
    if kind is None or url is None or worker is None:
        return None
    reference = _text(leaves, "gateway", "api_key")
    source, _, locator = (reference or "").partition(":")
    key = SecretRef(source=SecretSource(source), locator=locator) if reference else None
    return Gateway(kind=kind, url=url.rstrip("/"), worker=worker.rstrip("/"), api_key=key)


def _hooks(leaves: Leaves) -> Hooks | None:
    pre_drain, post_ready = _texts(leaves, "hooks", "pre_drain"), _texts(leaves, "hooks", "post_ready")
    if not pre_drain and not post_ready:
        return None
    return Hooks(pre_drain=pre_drain, post_ready=post_ready, limit_s=_seconds(leaves, "hooks", "limit"))
