"""What counts as a sign of progress."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specctl.rollout import signals
from specctl.rollout.gate_types import Phase, Signal
from specctl.rollout.loadlog import LogScan
from specctl.rollout.observation import Observation, UnitState

MIB = 1 << 20


def watch(looks: Sequence[Observation]) -> dict[str, Signal]:
    """Fold looks and return the signals by name."""
    state = signals.begin(0.0)
    for seen in looks:
        state = signals.watch(state, seen, LogScan(), Phase.START, seen.at_s)
    return {signal.name: signal for signal in state}


def looks(**figures: Sequence[float]) -> list[Observation]:
    """Return a look a second with these figures."""
    count = max(len(values) for values in figures.values())
    rows = [{name: values[at] for name, values in figures.items()} for at in range(count)]
    return [Observation(at_s=float(at), unit=UnitState(), **row) for at, row in enumerate(rows)]  # type: ignore[arg-type]  # by keyword


@pytest.mark.parametrize(
    ("figure", "name", "values", "moved_at_s"),
    [
        ("rss_bytes", signals.MEMORY, [0, 4 * MIB, 8 * MIB, 9 * MIB], 2.0),
        ("rss_bytes", signals.MEMORY, [20 * MIB, 24 * MIB, 16 * MIB, 20 * MIB], 0.0),
        ("read_bytes", signals.READ, [0, MIB // 2, MIB, MIB], 2.0),
        ("gpu_bytes", signals.GPU, [MIB, 0, 0, 0], 1.0),
        ("cpu_s", signals.CPU, [0.0, 0.02, 0.04, 0.06], 0.0),
        ("cpu_s", signals.CPU, [0.0, 0.9, 1.8, 2.7], 3.0),
        ("cpu_s", signals.CPU, [0.0, float("nan"), float("inf"), 0.1], 0.0),
    ],
)
def test_a_signal_moves_when_it_leaves_its_mark(figure: str, name: str, values: list[float], moved_at_s: float) -> None:
    """Slow growth adds up to a movement, noise around a value does not, shrinking is movement too."""
    assert watch(looks(**{figure: values}))[name].moved_at_s == moved_at_s


def test_only_figures_make_silence_mean_something() -> None:
    """A log and a phase alone cannot stall."""
    state = signals.watch(
        signals.begin(0.0), Observation(at_s=1.0, unit=UnitState()), LogScan(signs=3), Phase.START, 1.0
    )
    assert [signal.name for signal in signals.watched(state)] == [signals.LOG, signals.PHASE]
    assert not signals.can_stall(state)


def test_what_moves_is_named() -> None:
    """The signals that moved lately are named, the others not."""
    state = tuple(watch(looks(cpu_s=[0.0, 1.0, 2.0], rss_bytes=[5, 5, 5])).values())
    assert signals.moving(state, 30.0, 28.5) == (signals.CPU,)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (signals.CPU, 12.34, "CPU time 12.3 s"),
        (signals.MEMORY, 3.1e9, "memory 3.1 GB"),
        (signals.READ, 5e6, "disk reads 5 MB"),
        (signals.LOG, 7.0, "log lines 7"),
        (signals.GPU, None, "GPU memory —"),
    ],
)
def test_values_carry_their_units(name: str, value: float | None, words: str) -> None:
    """A last value is told with its unit, an unknown one as a dash."""
    assert str(Signal(name=name, value=value, mark=value, moved_at_s=0.0)) == words
