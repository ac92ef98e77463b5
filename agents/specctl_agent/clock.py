"""The agent's clocks: one that never jumps within a boot, the wall clock, and which boot this is."""

from __future__ import annotations

import time
from typing import Protocol

from specctl.control.policy_types import Now
from specctl.host import clock


class Clock(Protocol):
    """Tells the time. Contract: `mono_s` of `now` is time.monotonic's, and counts on while nothing else does."""

    def now(self) -> Now:
        """Return this instant."""


class HostClock:
    """The host's clocks."""

    def __init__(self) -> None:
        self._boot = clock.boot_id()

    def now(self) -> Now:
        """Return this instant."""
        return Now(mono_s=time.monotonic(), wall_s=time.time(), boot=self._boot)
