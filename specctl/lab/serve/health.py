"""/ready and /health: the first repeats what is known, the second asks the scheduler and always takes a second.

A failed /health marks the server unhealthy and only a good one repairs that; a pause makes it fail, as in the real server.
"""

from __future__ import annotations

import asyncio
import os
import time

from specctl.lab.serve.lifecycle import Status
from specctl.lab.serve.log import logger
from specctl.lab.serve.service import Service

POLL_S = 1.0
TIMEOUT_VARIABLE = "SGLANG_HEALTH_CHECK_TIMEOUT"
DEFAULT_TIMEOUT_S = 20.0


def timeout_s() -> float:
    """Return how long /health waits for a sign of life, from SGLang's own variable."""
    return float(os.environ.get(TIMEOUT_VARIABLE, DEFAULT_TIMEOUT_S))


async def is_healthy(service: Service, limit_s: float) -> bool:
    """Ask the scheduler for a sign of life and remember the answer."""
    state = service.lifecycle
    if state.leaving:
        logger.info("Health check request received during shutdown. Returning 503.")
        return False
    if state.status is Status.STARTING:
        return False
    began, clock = time.monotonic(), time.time()
    service.probe()
    while time.monotonic() - began < limit_s:
        await asyncio.sleep(POLL_S)
        if service.scheduler.heartbeat > began:
            state.status = Status.UP
            return True
    state.status = Status.UNHEALTHY
    last = clock - (began - service.scheduler.heartbeat)
    logger.error(
        "Health check failed. Server couldn't get a response from detokenizer for last %d seconds. "
        "tic start time: %s. last_heartbeat time: %s",
        *(limit_s, _clock(clock), _clock(last)),
    )
    return False


def _clock(at: float) -> str:
    """Return a time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at))
