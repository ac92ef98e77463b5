"""Watch a server that starts or runs: unit, port, /ready, log lines and what its processes use, as one stream of observations.

An observation leaves at once when something changed, else once a second. Runs until it is cancelled. The wire form is read by
rollout/observation.py.
"""

from __future__ import annotations

import time
from typing import Dict, List, Mapping, Optional, Tuple

from specctl.host import clock, gpus, procs, services
from specctl.host.lines import LineQueue
from specctl.host.ready import Prober, reach
from specctl.host.states import State
from specctl.host.usage import GpuUse
from specctl.host.wake import Death, Wake
from specctl.host.wire import Call, OpError

PERIOD_S = 0.2
EVENT_PERIOD_S = 1.0
# Asking systemd costs about 20 ms of CPU: rarely while the main process is seen to live, often while its end is not yet told.
STATE_PERIOD_S = {"living": 2.0, "absent": 1.0, "dying": 0.1}
DYING_S = 5.0
GATHER_S = 0.02
LINES_AT_ONCE = 500
CHARS_AT_ONCE = 1 << 20


class Watch:
    """One server under watch."""

    def __init__(self, call: Call) -> None:
        args = call.args
        self._call = call
        self._service = services.of(args)
        self._period_s = max(0.05, args.number("period_s", PERIOD_S))
        self._wake = Wake()
        self._queue = LineQueue(self._wake.ring)
        self._state = self._service.state()
        self._asked_s = time.monotonic()
        self._main: Optional[Tuple[int, int]] = None
        self._death: Optional[Death] = None
        self._died_s: Optional[float] = None
        self._pids: List[int] = []
        self._figures: Optional[procs.Figures] = None
        self._figured_s = 0.0
        self._take_main()
        port = args.whole_or_none("port")
        address = reach(args.text_or_none("bind") or "")
        self._prober = (
            Prober(address, port, lambda: self._service.pids(self._state), self._wake.ring)
            if port is not None
            else None
        )
        self._gpus = GpuUse(lambda: self._pids) if gpus.present() else None
        lines = 0 if args.text_or_none("since") == "now" else None
        self._source = self._service.follow(args.text_or_none("invocation") or self._state.invocation, lines)
        self._told: Optional[Mapping[str, object]] = None
        self._told_s = 0.0

    def _take_main(self) -> None:
        """Watch the main process that the service manager names now."""
        pid = self._state.main_pid
        began = procs.started(pid) if pid is not None else None
        main = (pid, began) if pid is not None and began is not None else None
        if main == self._main:
            return
        self._close_death()
        self._main = main
        self._death = Death(main[0]) if main is not None else None

    def _close_death(self) -> None:
        if self._death is not None:
            self._death.close()
            self._death = None

    def _mood(self) -> str:
        if self._died_s is not None and time.monotonic() - self._died_s < DYING_S:
            return "dying"
        return "living" if self._main is not None else "absent"

    def _wait(self) -> None:
        """Sleep until something happens, or a period is over."""
        period_s = min(self._period_s, STATE_PERIOD_S[self._mood()])
        self._wake.wait(period_s, self._death.descriptor if self._death else None)
        self._call.cancelled.wait(GATHER_S)

    def _look(self) -> None:
        """Bring state and figures up to date, each as often as it is worth."""
        now_s = time.monotonic()
        if self._main is not None and not procs.alive(self._main):
            self._main = None
            self._close_death()
            self._died_s = now_s
            self._asked_s = 0.0
        if now_s - self._asked_s >= STATE_PERIOD_S[self._mood()]:
            self._ask()
        if now_s - self._figured_s >= EVENT_PERIOD_S:
            self._pids = self._service.pids(self._state)
            self._figures = procs.figures(self._pids)
            self._figured_s = now_s

    def _ask(self) -> None:
        """Ask the service manager; when it does not say, the state is unknown until it does."""
        try:
            self._state = self._service.state()
        except OpError:
            self._state = State()
        self._asked_s = time.monotonic()
        self._take_main()
        if self._main is not None or self._state.main_pid is None:
            settled = self._state.active in ("inactive", "failed", "activating") or self._main is not None
            self._died_s = None if settled else self._died_s

    def _facts(self) -> Dict[str, object]:
        """Return what makes an observation worth telling at once."""
        unit = self._state.as_wire()
        if self._main is None:
            unit["main_pid"] = None  # The manager may be a moment late in noticing the death.
        prober = self._prober
        return {
            "unit": unit,
            "port": prober.owner.port if prober else None,
            "port_owner": prober.owner.words() if prober else None,
            "ready": prober.ready if prober else None,
        }

    def _tell(self) -> None:
        """Emit an observation if there is something new or a second is over."""
        facts = self._facts()
        lines, lost = self._queue.take(LINES_AT_ONCE, CHARS_AT_ONCE)
        now_s = time.monotonic()
        if facts == self._told and not lines and not lost and now_s - self._told_s < EVENT_PERIOD_S:
            return
        figures = self._figures
        self._call.emit(
            {
                **facts,
                "at_s": clock.boottime_s(),
                "lines": lines,
                "processes": figures.processes if figures else None,
                "rss_bytes": figures.rss_bytes if figures else None,
                "read_bytes": figures.read_bytes if figures else None,
                "cpu_s": figures.cpu_s if figures else None,
                "gpu_bytes": self._gpus.used_bytes if self._gpus else None,
                "journal_lost": lost,
            }
        )
        self._told, self._told_s = facts, now_s
        if len(lines) == LINES_AT_ONCE:
            self._wake.ring()

    def run(self) -> None:
        """Watch until cancelled."""
        self._source.start(self._queue)
        helpers = [helper for helper in (self._prober, self._gpus) if helper is not None]
        for helper in helpers:
            helper.start()
        try:
            while not self._call.cancelled.is_set():
                self._look()
                self._tell()
                self._wait()
        finally:
            self._source.stop()
            for helper in helpers:
                helper.stop()
            self._close_death()
            self._wake.close()


def watch(call: Call) -> Mapping[str, object]:
    """Emit observations until the operator cancels."""
    Watch(call).run()
    return {"ended": "cancelled"}
