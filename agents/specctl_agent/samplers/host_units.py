"""Watches the servers' units: control groups at each look, which costs microseconds, and systemd now and then.

`systemctl show` costs a process of about 10 ms. It is asked every `ASK_S`, and at once when a unit was started anew
or its control group went away. Reads only; under another service manager than systemd there is nothing to watch.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Where a unit's control group is read: one folder for all of it, or one a controller under cgroup v1."""

    folder: str
    current: str
    limit: str
    events: str
    pids: str

    @property
    def gone(self) -> bool:
        """Whether it was removed: its last process has ended."""
        return not os.path.exists(self.folder)  # noqa: PTH110 - see _read


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
        self._links = {unit: str(invocations / f"invocation:{unit}") for unit in self._units}
        self._states: Mapping[str, UnitState] = {}
        self._groups: Mapping[str, _Group | None] = {}
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
        state, group = self._states.get(unit), self._groups.get(unit)
        if state is None:
            return False
        return (group is not None and group.gone) or self._invocation(unit, state.invocation) != state.invocation

    def _refresh(self, now_s: float) -> None:
        self._tried_at_s = now_s
        said = self._ask(self._units)
        # In the order of the question: an alias is answered with its unit's own name.
        self._states = {} if said is None else dict(zip(self._units, parse_show(said), strict=False))
        self._groups = {unit: _group(self._cgroups, state.control_group) for unit, state in self._states.items()}
        self._asked_at_s = None if said is None else now_s

    def _sample(self, unit: str) -> UnitSample:
        state, group = self._states.get(unit) or UnitState(unit=unit), self._groups.get(unit)
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
            memory_bytes=None if group is None else parse_count(_read(group.current)),
            limit_bytes=None if group is None else parse_count(_read(group.limit)),
            oom_kills=None if group is None else parse_event(_read(group.events), "oom_kill"),
            processes=None if group is None else parse_count(_read(group.pids)),
        )

    def _invocation(self, unit: str, known: str | None) -> str | None:
        """Return the id of the unit's start: as systemd links it now, else as it said when it was asked."""
        try:
            return os.readlink(self._links[unit])  # noqa: PTH115 - see _read
        except OSError:
            return known


def _group(cgroups: Path, name: str | None) -> _Group | None:
    """Return where that group is read on this host, None where it is not there."""
    below = (name or "").lstrip("/")
    if not below:
        return None
    one = cgroups / below
    if one.exists():
        return _files(one, one, ("memory.current", "memory.max", "memory.events"))
    memory, pids = cgroups / "memory" / below, cgroups / "pids" / below
    if not memory.exists():
        return None
    return _files(memory, pids, ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control"))


def _files(memory: Path, pids: Path, names: tuple[str, str, str]) -> _Group:
    current, limit, events = (str(memory / name) for name in names)
    return _Group(folder=str(memory), current=current, limit=limit, events=events, pids=str(pids / "pids.current"))


def _read(path: str) -> str:
    """Return the file's text, empty where there is none.

    By os.open's kind of path: pathlib interns the parts of each path that it makes, and at each tick that adds up.
    """
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
