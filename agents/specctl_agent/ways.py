"""Which modes a server could be in, and what it takes to get to each: from its note, its engine's word, and its own past loads.

A sampler, since the engine has to be asked: it must not delay the loop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.policy_costs import HostCosts
from specctl.control.policy_types import Means
from specctl.fleet.types import AgentSettings
from specctl.ops.engine_live import ALGO
from specctl.rollout import reading
from specctl.rollout.record import past_load_rows
from specctl_agent.acting import Acting
from specctl_agent.actuators import Cost
from specctl_agent.places import Place

PERIOD_S = 60.0
DEADLINE_S = 45.0
RECORDS = "records.jsonl"
RECORDS_BYTES = 1 << 19
# The newest so many acts tell what the next one takes: disks and models change.
PAST = 5
# The policy works each out at every look.
MOST_MODES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The modes there are, what a change to each takes, and which means are refused and why."""

    modes: tuple[Mode, ...]
    costs: HostCosts
    refused: Mapping[Means, str] = field(default_factory=dict)


class WaysSampler:
    """Works the ways of one server out anew each minute."""

    period_s = PERIOD_S
    deadline_s = DEADLINE_S

    def __init__(self, place: Place, acting: Acting, running: Mode | None) -> None:
        self.name = f"{place.name}/ways"
        self._place = place
        self._acting = acting
        self._running = running

    def sample(self) -> Ways:
        """Look at note, records and engine."""
        place, running = self._place, self._running
        found = candidates(place, running)
        live_knobs, live_algos, why = self._live(running, found)
        agent = place.note.server.agent
        loads = past_loads(place)
        refused: dict[Means, str] = {} if agent.drains else {Means.RESTART: "nothing takes requests off the server"}
        if why is not None and not live_algos and not live_knobs:
            refused[Means.LIVE] = why
        return Ways(
            modes=found,
            costs=HostCosts(
                live_knobs=live_knobs,
                live_algos=live_algos,
                drain_s=past_drain_s(place),
                load_s=loads,
                default_load_s=max(loads.values(), default=None),
            ),
            refused=refused,
        )

    def close(self) -> None:
        """Hold nothing."""

    def _live(
        self, running: Mode | None, found: tuple[Mode, ...]
    ) -> tuple[dict[str, frozenset[str]], bool, str | None]:
        """Return what the engine takes while it runs: knobs by algo, other algos; and its word where it takes neither."""
        if running is None:
            return {}, False, "what runs is not known"
        why: str | None = None
        takes_algos = False
        for other in found:
            if other.algo != running.algo:
                why = self._acting.can(Cost.LIVE, running, other)
                takes_algos = why is None
                break
        profile = self._place.note.server.profile
        knobs: dict[str, frozenset[str]] = {}
        for other in found:
            if other.algo == running.algo and other != running:
                why = self._acting.can(Cost.LIVE, running, other)
                if why is None:
                    names = frozenset(profile.algos[running.algo].live_knobs) - {ALGO}
                    knobs[running.algo] = names
                break
        return knobs, takes_algos, why


def candidates(place: Place, running: Mode | None) -> tuple[Mode, ...]:
    """Return the modes that the agent may choose among here, the running one among them.

    Of each algo that it owns (only the running one's where the inventory names none): how a release starts it, and each owned
    knob at its bounds and at the powers of two between, the others as they are.
    """
    agent = place.note.server.agent
    startable = {mode.algo: mode for mode in place.startable}
    if running is not None:
        startable[running.algo] = running
    owned = agent.algos or ((running.algo,) if running is not None else ())
    found = [running] if running is not None else []
    for algo in owned:
        base = startable.get(algo)
        if base is not None:
            found += [each for each in (base, *_turned(base, agent)) if each not in found]
    return tuple(found[:MOST_MODES])


def _turned(base: Mode, agent: AgentSettings) -> list[Mode]:
    found = []
    for name in sorted(agent.knobs.get(base.algo, {})):
        for value in agent.steps(base.algo, name):
            try:
                found.append(modes.mode(base.algo, {**dict(base.knobs), name: value}))
            except ValueError:
                continue  # a knob that does not go with the others at that value
    return found


def past_loads(place: Place) -> Mapping[str, float]:
    """Return the median seconds of this host's last loads of each algo; what never loaded here is not in it."""
    rows = _records(place)
    found: dict[str, list[float]] = {}
    for row, seconds in past_load_rows(rows, None, len(rows)):
        serving = reading.texts(row.get("serving"))
        found.setdefault(serving[1] if len(serving) == 2 else str(row.get("algo")), []).append(seconds)
    return {algo: _median(seconds[-PAST:]) for algo, seconds in found.items()}


def past_drain_s(place: Place) -> float:
    """Return the median seconds that stopping, and draining before it, took in this host's last acts; 0 where none did."""
    found = []
    for row in _records(place):
        took = reading.mapping(row.get("durations_s"))
        seconds = [reading.number(took.get(name)) for name in ("drain", "stop")]
        if seconds[1] is not None:
            found.append(sum(each for each in seconds if each is not None))
    return _median(found[-PAST:]) if found else 0.0


def _records(place: Place) -> tuple[Mapping[str, object], ...]:
    """Return the newest records of the server, oldest first; none where they cannot be read."""
    try:
        with (place.folder / RECORDS).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - RECORDS_BYTES))
            lines = file.read(RECORDS_BYTES).split(b"\n")
    except OSError:
        return ()
    found = []
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the first one is cut where the file is long
        if isinstance(row, dict):
            found.append(row)
    return tuple(found)


def _median(values: Sequence[float]) -> float:
    """Return the middle value, the upper one of two; the standard library's costs half a megabyte of fractions and decimals."""
    return sorted(values)[len(values) // 2]
