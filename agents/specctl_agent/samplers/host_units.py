"""Watches the servers' units: control groups at each look, which costs microseconds, and systemd now and then.

`systemctl show` costs a process of about 10 ms. It is asked every `ASK_S`, and at once when a unit was started anew
or its control group went away. Reads only; under another service manager than systemd there is nothing to watch.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from specctl.control.sample.host import PROPERTIES, UnitSample, UnitState, parse_count, parse_event, parse_show

ASK_S = 15.0
# A unit that starts over and over is news each time, but no reason to ask at each look.
ASK_AGAIN_S = 2.0
SYSTEMCTL_S = 5.0
CGROUPS = Path("/sys/fs/cgroup")
# systemd links each running unit's name to the id of its start here.
INVOCATIONS = Path("/run/systemd/units")


def ask_systemd(units: Sequence[str]) -> str | None:
    """Return what `systemctl show` prints of these units, None where there is no answer."""
    command = ["systemctl", "show", f"--property={','.join(PROPERTIES)}", "--", *units]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SYSTEMCTL_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


class UnitWatch:
    """The units of one host, by their full names (`specctl-chat.service`)."""

    def __init__(
        self,
        units: Sequence[str],
        *,
        ask: Callable[[Sequence[str]], str | None] = ask_systemd,
        cgroups: Path = CGROUPS,
        invocations: Path = INVOCATIONS,
    ) -> None:
        self._units = tuple(units)
        self._ask = ask
        self._cgroups = cgroups
        self._invocations = invocations
        self._states: Mapping[str, UnitState] = {}
        self._asked_at_s: float | None = None
        self._tried_at_s: float | None = None

    def sample(self, now_s: float) -> tuple[UnitSample, ...]:
        """Take one look at each unit."""
        if not self._units:
            return ()
        if self._due(now_s):
            self._refresh(now_s)
        return tuple([self._sample(unit) for unit in self._units])

    def _due(self, now_s: float) -> bool:
        if self._tried_at_s is None or now_s - self._tried_at_s >= ASK_S:
            return True
        return now_s - self._tried_at_s >= ASK_AGAIN_S and any(self._changed(unit) for unit in self._units)

    def _changed(self, unit: str) -> bool:
        state = self._states.get(unit)
        if state is None:
            return False
        group = self._group(state)
        gone = state.active == "active" and group is not None and not group.exists()
        return gone or self._invocation(unit, state.invocation) != state.invocation

    def _refresh(self, now_s: float) -> None:
        self._tried_at_s = now_s
        said = self._ask(self._units)
        if said is None:
            self._states, self._asked_at_s = {}, None
            return
        # In the order of the question: an alias is answered with its unit's own name.
        self._states, self._asked_at_s = dict(zip(self._units, parse_show(said), strict=False)), now_s

    def _sample(self, unit: str) -> UnitSample:
        state = self._states.get(unit) or UnitState(unit=unit)
        group = self._group(state)
        return UnitSample(
            unit=unit,
            asked_at_s=self._asked_at_s,
            load=state.load,
            active=state.active,
            sub=state.sub,
            result=state.result,
            main_pid=state.main_pid,
            restarts=state.restarts,
            invocation=self._invocation(unit, state.invocation),
            memory_bytes=_count(group, "memory.current"),
            limit_bytes=_count(group, "memory.max"),
            oom_kills=parse_event(_read(group, "memory.events"), "oom_kill"),
            processes=_count(group, "pids.current"),
        )

    def _invocation(self, unit: str, known: str | None) -> str | None:
        """Return the id of the unit's start: as systemd links it now, else as it said when it was asked."""
        try:
            return str((self._invocations / f"invocation:{unit}").readlink())
        except OSError:
            return known

    def _group(self, state: UnitState) -> Path | None:
        return None if state.control_group is None else self._cgroups / state.control_group.lstrip("/")


def _read(group: Path | None, name: str) -> str:
    """Return the file's text, empty where there is none: the group is gone, or this host has no such control group."""
    if group is None:
        return ""
    try:
        with (group / name).open(encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _count(group: Path | None, name: str) -> int | None:
    return parse_count(_read(group, name))
