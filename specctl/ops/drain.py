"""Drain: wait until a server has no running request, up to its limit, and say what would be cut off.

Stock SGLang goes on accepting work after SIGTERM and has no upper limit of its own (engine facts §3.3), so the limit is ours.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from specctl.ops.engine_http import EngineClient, NoAnswerError

if TYPE_CHECKING:
    from specctl.ops.turn import Turn

POLL_S = 0.3
# An engine that does not answer, this many times in a row, is not waited for.
DEAF_LIMIT = 3


def drain(turn: Turn) -> int | None:
    """Wait for zero running and waiting requests; return how many were left at the limit, None when the engine cannot say."""
    if turn.facts.unit.active != "active":
        return 0
    client = EngineClient.of(turn.contact, turn.live)
    limit_s = turn.server.limits.drain_s
    with turn.timed("drain"):
        left, deaf = _wait(turn, client, time.monotonic() + limit_s)
    if left is None:
        if client.key_refused():
            why = "refuses our API key" if client.key else "wants an API key, and there is none here"
            turn.reporter.final(turn.host, "drain", f"the engine {why}: requests that still run are cut off")
            return None
        why = "does not answer" if deaf else "cannot say what is running"
        turn.reporter.step(turn.host, "drain", f"the engine {why}: nothing to wait for")
        return None
    if left:
        turn.reporter.final(turn.host, "drain", f"{left} requests still running after {limit_s:.0f} s are cut off")
    return left


def _wait(turn: Turn, client: EngineClient, deadline: float) -> tuple[int | None, bool]:
    deaf = 0
    while True:
        try:
            left, deaf = client.running_requests(), 0
        except NoAnswerError:
            left, deaf = None, deaf + 1
        if left == 0 or (left is None and deaf in (0, DEAF_LIMIT)):
            return left, deaf > 0
        turn.reporter.step(turn.host, "drain", f"{'—' if left is None else left} running")
        if time.monotonic() >= deadline or turn.interrupted.wait(POLL_S):
            return left, False
