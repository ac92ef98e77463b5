"""Watch what moves while an engine loads, so that a load without any sign of progress can be told from a slow one.

Pure; called by rollout/gate.py. Processor time alone drips in a process that hangs (poll loops, answers to probes): it counts as
movement only above a twentieth of a core.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from specctl.rollout.gate_types import Phase, Signal
from specctl.rollout.loadlog import LogScan
from specctl.rollout.observation import Observation

LOG = "log lines"
CPU = "CPU time"
READ = "disk reads"
MEMORY = "memory"
GPU = "GPU memory"
PHASE = "phase"
FIGURES = (CPU, READ, MEMORY, GPU)

_MIB = float(1 << 20)
_IDLE_CORES = 0.05
_NOISE = {LOG: 0.5, PHASE: 0.5, READ: 1 * _MIB, MEMORY: 8 * _MIB, GPU: 1 * _MIB, CPU: 0.5}


def begin(at_s: float) -> tuple[Signal, ...]:
    """Return the signals, none of them seen yet."""
    return tuple(Signal(name=name, value=None, mark=None, moved_at_s=at_s) for name in (LOG, *FIGURES, PHASE))


def watch(
    signals: tuple[Signal, ...], seen: Observation, scan: LogScan, phase: Phase, now_s: float
) -> tuple[Signal, ...]:
    """Return the signals after one look."""
    reads: dict[str, Callable[[], float | None]] = {
        LOG: lambda: float(scan.signs) if scan.signs else None,
        CPU: lambda: seen.cpu_s,
        READ: lambda: _float(seen.read_bytes),
        MEMORY: lambda: _float(seen.rss_bytes),
        GPU: lambda: _float(seen.gpu_bytes),
        PHASE: lambda: float(phase.place),
    }
    return tuple(_moved(signal, reads[signal.name](), now_s) for signal in signals)


def watched(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """Return the signals that were ever seen."""
    return tuple(signal for signal in signals if signal.value is not None)


def can_stall(signals: tuple[Signal, ...]) -> bool:
    """Claim that silence means something: a figure of the processes is known (a log is silent for minutes while all is well)."""
    return any(signal.value is not None for signal in signals if signal.name in FIGURES)


def moving(signals: tuple[Signal, ...], now_s: float, within_s: float) -> tuple[str, ...]:
    """Name the signals that moved within the last so many seconds."""
    return tuple(signal.name for signal in watched(signals) if now_s - signal.moved_at_s <= within_s)


def _moved(signal: Signal, value: float | None, now_s: float) -> Signal:
    if value is None or not math.isfinite(value):
        return signal
    if signal.mark is None:
        return replace(signal, value=value, mark=value, moved_at_s=now_s)
    noise = _NOISE[signal.name]
    if signal.name == CPU:
        noise += _IDLE_CORES * max(now_s - signal.moved_at_s, 0.0)
    if abs(value - signal.mark) >= noise:
        return replace(signal, value=value, mark=value, moved_at_s=now_s)
    return replace(signal, value=value)


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
