"""The modes that the agent chooses among on one server: what it owns, where the engine or a release on the host gives it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specctl.control.mode import Mode, mode
from specctl.rollout.server_note import ServerNote

# A knob that can be set live is tried in steps of this factor: what lies between two steps gains less than it costs to find out.
STEP = 2


def choices(note: ServerNote, release: str, algo: str) -> tuple[Mode, ...]:
    """Return the modes, the one that a start would run first; `release` and `algo` are what the host's link says."""
    known = note.releases.get(release)
    if known is None or algo not in known.knobs:
        return ()
    agent, found = note.server.agent, [(algo, known.knobs[algo])]
    algos = [name for name in known.knobs if name == algo or (name in agent.algos and algo in agent.algos)]
    for name in algos:
        found.append((name, known.knobs[name]))
        found.extend((name, knobs) for knobs in _moved(note, name, known.knobs[name]))
    return tuple(dict.fromkeys(_modes(found)))


def _moved(note: ServerNote, algo: str, knobs: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """Yield the knobs of an algo with each owned one moved: live along a ladder, else to what another release starts with."""
    profile = note.server.profile.algos.get(algo)
    for name, (low, high) in note.server.agent.knobs.get(algo, {}).items():
        if profile is not None and name in profile.live_knobs:
            values = list(ladder(low, high))
        else:
            values = [
                one.knobs[algo][name]
                for one in note.releases.values()
                if {**one.knobs.get(algo, {}), name: 0} == {**knobs, name: 0}
            ]
        yield from ({**knobs, name: value} for value in values if low <= value <= high)


def ladder(low: int, high: int) -> Iterator[int]:
    """Yield the lowest value, its doubles, and the highest."""
    value = low
    while value < high:
        yield value
        value = max(value + 1, value * STEP)
    yield high


def _modes(found: list[tuple[str, Mapping[str, int]]]) -> Iterator[Mode]:
    for algo, knobs in found:
        try:
            yield mode(algo, knobs)
        except ValueError:
            continue
