"""Questions asked at once: one that fails or hangs is missing, and takes nothing else with it."""

from __future__ import annotations

import threading
import time

from specctl.host.together import answers
from specctl.host.wire import USAGE, OpError


def refuse() -> object:
    """Fail as an op does."""
    raise OpError(USAGE, "argument port is missing")


def lack() -> object:
    """Fail as the system does."""
    raise FileNotFoundError("no such thing")


def test_what_fails_is_none_with_a_warning() -> None:
    """Every failure is told, and the others are answered."""
    warnings: list[str] = []
    found = answers({"one": lambda: 1, "two": refuse, "three": lack}, time.monotonic() + 10, warnings)
    assert found == {"one": 1, "two": None, "three": None}
    assert sorted(warnings) == ["argument port is missing", "no such thing"]


def test_what_hangs_is_given_up_at_the_deadline() -> None:
    """All questions share one deadline; what has come by then is kept."""
    release, warnings = threading.Event(), list[str]()
    began = time.monotonic()
    asks = {"quick": lambda: 1, "gpu_processes": release.wait, "fabric": release.wait}
    found = answers(asks, began + 0.2, warnings)
    took = time.monotonic() - began
    release.set()
    assert found == {"quick": 1, "gpu_processes": None, "fabric": None}
    assert warnings == ["not known in time: gpu processes, fabric"]
    assert took < 5.0
