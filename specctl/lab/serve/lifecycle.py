"""The server's state as its probes see it: starting, up or unhealthy; paused or not; leaving or not. No clock, no I/O."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Status(enum.Enum):
    """What the last warm-up or /health said."""

    STARTING = "Starting"
    UP = "Up"
    UNHEALTHY = "UnHealthy"


@dataclass(slots=True)
class Lifecycle:
    """The state; /ready repeats it and costs nothing."""

    status: Status = Status.STARTING
    paused: bool = False
    leaving: bool = False

    @property
    def is_ready(self) -> bool:
        """Tell whether /ready answers 200."""
        return self.status is Status.UP and not self.paused and not self.leaving
