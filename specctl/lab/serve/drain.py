"""Leaving on SIGTERM as SGLang does: not ready at once, still accepting work, gone when idle; no upper limit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from specctl.lab.serve.log import logger
from specctl.lab.serve.service import Service

POLL_VARIABLE = "SPECCTL_LAB_DRAIN_POLL_SECONDS"
DEFAULT_POLL_S = 1.0
"""SGLang looks every 5 s."""


class Drain:
    """Waits for the running requests, then stops the server; a second SIGTERM changes nothing."""

    def __init__(self, service: Service, stop: Callable[[], None]) -> None:
        self._service = service
        self._stop = stop
        self._poll_s = float(os.environ.get(POLL_VARIABLE, DEFAULT_POLL_S))
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """React to SIGTERM, in the event loop."""
        if self._service.launch.options.faults.has("ignore-sigterm"):
            return
        logger.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        self._service.lifecycle.leaving = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Look at intervals until nothing is left."""
        while True:
            await asyncio.sleep(self._poll_s)
            left = list(self._service.open_rids)
            logger.info(
                "Gracefully exiting... Remaining number of requests %d. Remaining requests remaining_rids=%s.",
                len(left),
                left,
            )
            if not left:
                break
        pid = os.getpid()
        logger.info("kill_process_tree called: parent_pid=%d, include_parent=False, pid=%d", pid, pid)
        self._stop()
