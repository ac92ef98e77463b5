"""Log lines on their way from a reader thread to the op that wants them: bounded, the oldest dropped, the loss remembered."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque, List, Tuple

QUEUE_LINES = 5000
QUEUE_CHARS = 8 << 20
LINE_CHARS = 1 << 20


def split(text: str) -> List[str]:
    """Split a message at newlines and carriage returns (each an update of a progress bar); empty ones go, long ones are cut."""
    pieces = (piece.rstrip() for piece in text.replace("\r", "\n").split("\n"))
    return [piece[:LINE_CHARS] for piece in pieces if piece]


class LineQueue:
    """Lines between threads; `push` never blocks."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._lock = threading.Lock()
        self._lines: Deque[str] = deque()
        self._chars = 0
        self._lost = False

    def push(self, lines: List[str]) -> None:
        """Add lines; drops the oldest when there are too many."""
        if not lines:
            return
        with self._lock:
            for line in lines:
                self._lines.append(line)
                self._chars += len(line)
            while len(self._lines) > QUEUE_LINES or self._chars > QUEUE_CHARS:
                self._chars -= len(self._lines.popleft())
                self._lost = True
        self._notify()

    def lose(self) -> None:
        """Remember that lines were lost on the way to here."""
        with self._lock:
            self._lost = True

    def take(self, count: int, chars: int) -> Tuple[List[str], bool]:
        """Return the oldest lines, so many at most, and whether any was lost since the last time."""
        taken: List[str] = []
        with self._lock:
            while self._lines and len(taken) < count and chars > 0:
                taken.append(self._lines.popleft())
                chars -= len(taken[-1])
                self._chars -= len(taken[-1])
            lost, self._lost = self._lost, False
        return taken, lost
