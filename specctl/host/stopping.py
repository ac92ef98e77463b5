"""Stop a server and wait until all of it is gone: unit, processes, port, GPU memory; what stays is named."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Dict, List, Mapping, Optional, Tuple

from specctl.host import gpus, keeper, ports, procs, services
from specctl.host.states import State
from specctl.host.wire import REMOTE_COMMAND, Call, OpError

STEP_S = 0.1
STATE_PERIOD_S = 0.5
GPU_PERIOD_S = 1.0
EVENT_PERIOD_S = 1.0
AFTER_KILL_S = 10.0
STRANGER_S = 10.0
# As systemd does with KillMode=mixed: what outlives the main process is not asked again.
OUTLIVED_S = 1.0

Process = Tuple[int, int]


class Stop:
    """One stop under way: what belonged to the server, and what of it is still there."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._port = call.args.whole_or_none("port")
        self.service = services.of(call.args)
        self._state: State = self.service.state()
        self._asked_s = time.monotonic()
        self._own: Dict[Process, str] = {}
        self._remember(self.service.family(self._state))
        self.ours = False
        self.outlived: List[str] = []
        self._rested_s: Optional[float] = None
        self._gpu_asked_s: Optional[float] = None
        self._on_gpu: List[Process] = []

    def _remember(self, pids: List[int]) -> None:
        """Add processes to the server's own, so that one which leaves the group later is still known."""
        for process in procs.marked(pids):
            if process not in self._own:
                self._own[process] = procs.name(process[0])

    def _refresh(self) -> None:
        # Once its processes are gone, only the manager's word is missing: ask for it at every step.
        period_s = STATE_PERIOD_S if self.living() else STEP_S / 2
        if not self._state.at_rest and time.monotonic() - self._asked_s >= period_s:
            self._state = self.service.state()
            self._asked_s = time.monotonic()
        self._remember(self.service.pids(self._state))

    def living(self) -> List[Process]:
        """Return the server's processes that still live."""
        return [process for process in self._own if procs.alive(process)]

    def _using_gpus(self) -> List[Process]:
        """Return the server's processes that the driver still counts, asked only once the processes are gone."""
        now_s = time.monotonic()
        if self._gpu_asked_s is None or now_s - self._gpu_asked_s >= GPU_PERIOD_S:
            used = gpus.processes() or {}
            self._on_gpu = [process for process in self._own if process[0] in used]
            self._gpu_asked_s = time.monotonic()
        return self._on_gpu

    def remaining(self) -> List[str]:
        """Say what is still there; empty: all gone."""
        self._refresh()
        living = self.living()
        found = [f"process {pid} ({self._own[(pid, began)]})" for pid, began in living]
        if not self._state.at_rest:
            found.append(f"unit {self._state.active or 'unknown'}")
        self.ours = bool(found)
        if found:
            return found
        if self._port is not None and ports.listening(self._port):
            owner = ports.owner(self._port, [])
            if owner.port != ports.REFUSED:
                found.append(f"port {self._port} held by {owner.words() or 'a process that cannot be seen'}")
        return found or [
            f"GPU memory of process {pid} ({self._own[(pid, began)]})" for pid, began in self._using_gpus()
        ]

    def wait(self, timeout_s: float) -> List[str]:
        """Wait until nothing remains, telling what does; return what is left when time is up.

        For a stranger on the port, or memory that the driver keeps, it waits only STRANGER_S: killing ours helps nothing.
        """
        began_s = told_s = ours_s = time.monotonic()
        told: List[str] = []
        while True:
            left = self.remaining()
            now_s = time.monotonic()
            ours_s = now_s if self.ours else ours_s
            self._end_outlived(now_s)
            if not left or now_s - began_s > timeout_s or now_s - ours_s > STRANGER_S:
                return left
            if left != told or now_s - told_s >= EVENT_PERIOD_S:
                self._call.emit({"waiting_for": left, "elapsed_s": round(now_s - began_s, 2)})
                told, told_s = left, now_s
            self._call.pause(STEP_S)

    def _end_outlived(self, now_s: float) -> None:
        """Kill the server's processes that go on though the unit has been at rest for a moment."""
        if not self._state.at_rest:
            self._rested_s = None
            return
        self._rested_s = now_s if self._rested_s is None else self._rested_s
        living = self.living()
        if living and now_s - self._rested_s > OUTLIVED_S:
            names = [f"process {pid} ({self._own[(pid, began)]})" for pid, began in living]
            if not set(names) <= set(self.outlived):
                self._call.emit({"killing": names})
            self.outlived = sorted({*self.outlived, *names})
            _kill(living)

    def names(self) -> List[str]:
        """Return the server's processes, gone or not, as people read them."""
        return sorted(f"{name} (pid {process[0]})" for process, name in self._own.items())

    def kill(self) -> None:
        """Kill what is left of the server: its unit, and by pid what left the unit but is known to be its own."""
        self.service.kill()
        _kill(self.living())


def _kill(processes: List[Process]) -> None:
    for process in processes:
        if procs.alive(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process[0], signal.SIGKILL)


def stop(call: Call) -> Mapping[str, object]:
    """Stop a server; returns when it is gone, kills after `timeout_s`, raises with the names of what even that left.

    With `for_good` nothing will be started in its place: a stranger on its port, or memory that the driver keeps, is only told.
    """
    began_s = time.monotonic()
    timeout_s = call.args.number("timeout_s", 60.0)
    stopping = Stop(call)
    stopping.service.request_stop()
    left = stopping.wait(timeout_s)
    killed = stopping.ours
    if killed:
        keeper.require(call.args)
        call.emit({"killing": left, "elapsed_s": round(time.monotonic() - began_s, 2)})
        stopping.kill()
        left = stopping.wait(AFTER_KILL_S)
    if left and (stopping.ours or not call.args.flag("for_good")):
        raise OpError(
            REMOTE_COMMAND,
            f"the server is not gone: {'; '.join(left)}",
            hint="end what is named, then run the command again",
        )
    if killed:
        stopping.service.reset_failed()  # it was stopped on purpose: what it ended with is no failure
    return {
        "killed": killed,
        "left": left,
        "processes": stopping.names(),
        "outlived": stopping.outlived,
        "wall_s": round(time.monotonic() - began_s, 3),
    }
