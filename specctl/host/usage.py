"""Ask the GPU driver now and then how much memory a server's processes use, in a thread, since the driver can be slow."""

from __future__ import annotations

import threading
from typing import Callable, List, Optional

from specctl.host import gpus

PERIOD_S = 5.0


class GpuUse:
    """`used_bytes` is the last finding; None: not known."""

    def __init__(self, pids: Callable[[], List[int]]) -> None:
        self.used_bytes: Optional[int] = None
        self._pids = pids
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin, in a thread."""
        threading.Thread(target=self._run, name="gpus", daemon=True).start()

    def stop(self) -> None:
        """End it; a question under way is not waited for."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            by_process = gpus.processes()
            own = set(self._pids())
            self.used_bytes = (
                None if by_process is None else sum(size for pid, size in by_process.items() if pid in own)
            )
            self._stopped.wait(PERIOD_S)
