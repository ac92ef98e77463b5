"""What the first and the second Ctrl-C do to a command that changes a server for a while and then brings back what ran."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Protocol


class Stopping(Protocol):
    """Whoever can be asked for the end."""

    def set(self) -> None:
        """Ask for the end."""


@contextlib.contextmanager
def interruptible(stop: Stopping) -> Iterator[None]:
    """Make the first Ctrl-C (or the end of the terminal) ask for the end, and the second leave at once."""
    asked = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        stop.set()
        with contextlib.suppress(OSError):
            sys.stderr.write("\ninterrupted: brings back what ran before (again leaves the host as it is)\n")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, on_signal) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
