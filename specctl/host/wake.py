"""Wake a thread that waits for several things at once: other threads ring, and a process's end is seen at once."""

from __future__ import annotations

import os
import select
import threading
from typing import Optional


class Wake:
    """A bell for one waiting thread."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._lock = threading.Lock()
        self._open = True

    def ring(self) -> None:
        """End the wait, or the next one; safe at any time from any thread."""
        with self._lock:
            if self._open:
                try:
                    os.write(self._write, b".")
                except BlockingIOError:
                    pass

    def wait(self, timeout_s: float, process: Optional[int] = None) -> bool:
        """Wait for a ring, or the end of the process behind a pidfd, or the time; say whether the process ended."""
        watched = [self._read] if process is None else [self._read, process]
        readable, _, _ = select.select(watched, [], [], max(0.0, timeout_s))
        if self._read in readable:
            try:
                os.read(self._read, 4096)
            except BlockingIOError:
                pass
        return process is not None and process in readable

    def close(self) -> None:
        """Take the bell away."""
        with self._lock:
            if self._open:
                self._open = False
                os.close(self._read)
                os.close(self._write)


class Death:
    """Tells the end of one process (pid, start): at once by pidfd where Python and kernel have it, else by a look at /proc."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        opener = getattr(os, "pidfd_open", None)
        try:
            self.descriptor: Optional[int] = opener(pid) if opener else None
        except OSError:
            self.descriptor = None

    def close(self) -> None:
        """Stop watching."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
