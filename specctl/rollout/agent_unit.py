"""The agent's units and its settings on a host, from what the inventory says of the host; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from specctl.errors import UsageError
from specctl.fleet.types import Host
from specctl.rollout import quoting, reading

UNITS = ("specctl-agent.service", "specctl-agent-actuate.path", "specctl-agent-actuate.service")
FORMAT = 1
# Not in Prometheus' list of default ports (of October 2026), so that no other exporter is met there.
METRICS_PORT = 9469
METRICS = f"127.0.0.1:{METRICS_PORT}"
GROUPS = ("specctl-agent", "systemd-journal")
# Names of the driver's device nodes in /proc/devices, of old drivers and new; systemd passes over those that a host lacks.
DEVICES = ("nvidia", "nvidia-frontend", "nvidia-caps", "nvidia-nvswitch", "nvidia-uvm")
HOMES = ("/home/", "/root/", "/run/user/")


class Renders(Protocol):
    """What makes a text of a template and values."""

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """Return the text of one template."""


def units(templates: Renders, *, host: Host, prefix: str, python: str) -> Mapping[str, str]:
    """Return the agent's unit files by name; `current` is the version that runs."""
    given = values(host=host, prefix=prefix, python=python)
    return {name: templates.render(f"{name}.j2", given) for name in UNITS}


def values(*, host: Host, prefix: str, python: str) -> Mapping[str, object]:
    """Return what the templates of the agent's units are given."""
    words = (python, "-I", "-S", f"{prefix}/current/agent.py")
    return {
        "host": host.name,
        "exec_start": " ".join(quoting.argument(word) for word in (*words, "run")),
        "perform": " ".join(quoting.argument(word) for word in (*words, "actuate")),
        "groups": " ".join(GROUPS),
        "protect_home": "read-only" if python.startswith(HOMES) else "yes",
        "devices": ["DevicePolicy=closed", *(f"DeviceAllow=char-{name} rw" for name in DEVICES)],
    }


def config(host: Host, before: Mapping[str, object], metrics: str | None) -> Mapping[str, object]:
    """Return the agent's settings; what the command line does not say stays as it was on the host."""
    was = reading.mapping(before.get("metrics"))
    address, port = _address(metrics) if metrics is not None else (was.get("address"), was.get("port"))
    usual, usual_port = _address(METRICS)
    shown = {"address": reading.text(address) or usual, "port": reading.whole(port) or usual_port}
    return {"format": FORMAT, "servers": str(host.state_dir), "metrics": shown}


def metrics_text(settings: Mapping[str, object]) -> str:
    """Return where metrics are served by these settings, as `--metrics` takes it."""
    shown = reading.mapping(settings.get("metrics"))
    return joined(str(shown.get("address")), shown.get("port"))


def joined(address: str, port: object) -> str:
    """Return ADDRESS:PORT, an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _address(text: str) -> tuple[str, int]:
    """Read ADDRESS:PORT, an IPv6 address in brackets; raises UsageError."""
    address, colon, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    if not colon or not address or not port.isascii() or not port.isdecimal() or not 1 <= int(port) <= 65_535:
        raise UsageError(f"--metrics {text} is not ADDRESS:PORT", hint=f"--metrics {METRICS}")
    return address, int(port)
