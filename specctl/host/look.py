"""One look at servers for `specctl status` and the dashboard, in one round trip: how they stand, what the agent says, GPUs.

It must stay cheap, since a dashboard asks each second: with no servers named, it only carries a line to the agent.
"""

from __future__ import annotations

import os
import time
from typing import Callable, Dict, List, Mapping, Optional

from specctl.host import agent_socket, clock, procs, services, standing
from specctl.host.together import answers, or_none
from specctl.host.wire import Args, Call, OpError

DEADLINE_S = 8.0
AGENT = "/etc/systemd/system/specctl-agent.service"
# A load prints some thousand lines at most; the phases need all of them.
LOG_LINES = 5000
ALWAYS = "always"
# The agent answers from memory; one that takes longer is ill.
AGENT_S = 3.0
LOADING = ("active", "activating", "reloading")


def look(call: Call) -> Mapping[str, object]:
    """Return how each server stands, the agent's answer to `line`, and figures of the GPUs where the agent has not given them."""
    args = call.args
    rows = args.parts("servers")
    found: List[Dict[str, object]] = [{} for _ in rows]
    warnings: List[str] = []
    deadline_s = time.monotonic() + args.number("timeout_s", DEADLINE_S)
    asks = {f"server {row.text('name')}": _standing(row, place) for row, place in zip(rows, found)}
    host = answers({**asks, "agent": lambda: _host(args)}, deadline_s, warnings)
    about = host.get("agent")
    return {
        **(about if isinstance(about, dict) else {"agent": {"problem": "the agent did not answer in time"}}),
        "at_s": clock.boottime_s(),
        "wall_s": clock.wall_s(),
        "servers": [dict(each) for each in found],
        "warnings": warnings,
    }


def _standing(row: Args, found: Dict[str, object]) -> Callable[[], object]:
    """Return the question how one server stands, whose answer goes into `found`."""

    def ask() -> None:
        standing.of_server(row, found)
        _of_load(row, found)

    return ask


def _of_load(row: Args, found: Dict[str, object]) -> None:
    """Add when the server's process began and, while nobody answers on its port, what it has said since."""
    unit = found.get("unit")
    if not isinstance(unit, dict) or not isinstance(unit.get("main_pid"), int):
        return
    began = procs.started(unit["main_pid"])
    found["started_s"] = None if began is None else began * procs.TICK_S
    if unit.get("active") in LOADING and found.get("port") == "refused":
        warnings = found["warnings"]
        assert isinstance(warnings, list)
        found["opening"] = or_none(lambda: services.of(row).head(LOG_LINES, unit.get("invocation")), warnings)


def _host(args: Args) -> Dict[str, object]:
    """Ask the agent, and the GPU driver's tool as `gpus` says: `always`, or where the agent gives no answer."""
    line = args.text_or_none("line")
    agent = None if line is None else _agent(line, args.text_or_none("socket"))
    wanted = args.text_or_none("gpus")
    if wanted is None or (wanted != ALWAYS and agent is not None and "line" in agent):
        return {"agent": agent}
    from specctl.host import gpus  # A tool that is not asked costs nothing.

    seen = gpus.figures()
    return {"agent": agent, "gpus": seen.gpus, "gpu_problem": seen.problem}


def _agent(line: str, socket: Optional[str]) -> Dict[str, object]:
    try:
        return {"line": agent_socket.put(line, socket, AGENT_S)}
    except OpError as error:
        return {"problem": error.message, "installed": os.path.exists(AGENT)}
