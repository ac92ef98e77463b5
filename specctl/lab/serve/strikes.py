"""Where injected faults strike, and how the server dies: as SGLang does when its scheduler fails, by SIGKILL after a traceback.

A real failure of the lab ends here too, so that what an operator sees is one and the same.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import NoReturn

from specctl.lab.serve.faults import Faults
from specctl.lab.serve.log import logger

CRASH_STALL_S = 1.0
"""A server whose scheduler died holds its port open this long without an answer (5 s in SGLang)."""
OOM_TEXT = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 94.97 GiB of which 1.12 GiB is free. "
    "Of the allocated memory 91.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated. "
    "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
GRAPH_ADVICE = (
    "Capture cuda graph failed: {error}\nPossible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)\n"
    "3. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
)


class OutOfMemoryError(RuntimeError):
    """Torch's error of that name; its traceback ends in torch's own words."""

    __module__ = "torch"


class InjectedCrashError(RuntimeError):
    """A crash that a test asked for."""


def strike(faults: Faults, phase: str) -> None:
    """Do what the faults of this phase say: raise, stop for ever, or die; nothing without one."""
    for fault in faults.at(phase):
        match fault.name:
            case "crash":
                raise InjectedCrashError(f"injected crash in phase {phase}")
            case "hang":
                threading.Event().wait()
            case "exit137":
                kill_self()
            case "oom":
                error = OutOfMemoryError(OOM_TEXT)
                if phase == "graph":
                    raise RuntimeError(GRAPH_ADVICE.format(error=OOM_TEXT)) from error
                raise error
            case _:
                continue


def die_while_starting(trace: str) -> NoReturn:
    """End the process as a scheduler that fails during the start ends SGLang: traceback, SIGQUIT line, SIGKILL (exit code 137)."""
    logger.error("Scheduler hit an exception: %s", trace)
    logger.error("Received sigquit from a child process. It usually means the child failed.")
    kill_tree()


def die_while_serving(trace: str) -> NoReturn:
    """End the process as a scheduler that fails while serving ends SGLang; the caller has stopped the event loop's answers."""
    logger.error("Scheduler hit an exception: %s", trace)
    logger.error("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    logger.error("Sleeping %d seconds before crash diagnostics to let GPU activity settle.", CRASH_STALL_S)
    time.sleep(CRASH_STALL_S)
    kill_tree()


def kill_tree() -> NoReturn:
    """Say so as SGLang does and end by SIGKILL."""
    pid = os.getpid()
    logger.error("kill_process_tree called: parent_pid=%d, include_parent=True, pid=%d", pid, pid)
    kill_self()


def kill_self() -> NoReturn:
    """End by SIGKILL, at once."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
    raise SystemExit(137)
