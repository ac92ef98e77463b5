"""What the first and the second Ctrl-C do to a command that works for a while: it ends in order, or leaves at once."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Protocol

# A command that changes a server and brings back what ran ends in order, too, when its terminal does, or a service manager asks.
EVERY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

BROUGHT_BACK = "brings back what ran before (again leaves the host as it is)"


class Stopping(Protocol):
    """Whoever can be asked for the end, as a threading.Event."""

    def set(self) -> None:
        """Ask for the end."""


@contextlib.contextmanager
def interruptible(
    stop: Stopping, words: str | None, signals: Sequence[signal.Signals] = (signal.SIGINT,)
) -> Iterator[None]:
    """Make the first of these signals ask for the end, saying `words` if any, and the second leave at once (KeyboardInterrupt)."""
    asked = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        stop.set()
        if words is None:
            return
        with contextlib.suppress(OSError):
            sys.stderr.write(f"\ninterrupted: {words}\n")

    before = [signal.signal(number, on_signal) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
