"""How busy a trace makes a server, and the same trace made more or less busy; requests come of rates here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from specctl.control.replay import arrivals
from specctl.control.replay.arrivals import Lengths, Windows
from specctl.control.replay.formats import Trace
from specctl.control.replay.load import Requests, Series, scaled
from specctl.control.replay.service import Service

# The busiest minute is the peak: shorter than a restart, longer than a burst of a few requests.
PEAK_WINDOW_S = 60.0
MOST_REQUESTS = 3_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What is replayed: its name and how long it lasts; of a series of concurrency, `requests` and `peak` are None.

    `peak`: the busiest minute's load over the best static capacity.
    """

    name: str
    span_s: float
    requests: int | None = None
    peak: float | None = None


def size(name: str, load: Requests | Series, service: Service) -> Size:
    """Measure a load."""
    if isinstance(load, Series):
        return Size(name=name, span_s=load.span_s)
    return Size(name=name, span_s=load.span_s, requests=len(load), peak=peak_load(service, load))


def peak_load(service: Service, requests: Requests) -> float:
    """Return the busiest minute's work over its length: 1 is all that the best static mode can do in it.

    The work of a request is the time that reading its prompt and generating its answer take at the best rate of any mode.
    """
    best = service.best_capacity
    found: dict[int, float] = {}
    for at_s, prompt, answer in zip(requests.at_s, requests.inputs, requests.outputs, strict=True):
        window = int(at_s // PEAK_WINDOW_S)
        found[window] = found.get(window, 0.0) + prompt * service.prefill_s + answer / best
    return max(found.values()) / PEAK_WINDOW_S


def by_scale(trace: Trace, ratio: float, lengths: Lengths, seed: int) -> Requests | Series:
    """Return a trace with `ratio` times the load; raises ValueError for a ratio that leaves nothing, or too much."""
    if not 0 < ratio < float("inf"):
        raise ValueError("a load is scaled by a number above zero")
    if ratio == 1 and not isinstance(trace, Windows):
        return trace
    match trace:
        case Series():
            return Series(step_s=trace.step_s, levels=[round(level * ratio) for level in trace.levels])
        case Requests():
            _bounded(len(trace) * ratio)
            return scaled(trace, ratio)
        case Windows():
            _bounded(trace.expected * ratio)
            return arrivals.requests(trace.scaled(ratio), lengths, seed)
        case _:
            assert_never(trace)


def by_peak(trace: Trace, peak: float, service: Service, lengths: Lengths, seed: int) -> Requests:
    """Return a trace whose busiest minute is that part of the best static capacity; raises ValueError where it has no arrivals."""
    match trace:
        case Series():
            raise ValueError("a series of concurrency has no arrivals whose load could be set")
        case Requests():
            found = by_scale(trace, peak / peak_load(service, trace), lengths, seed)
        case Windows():
            found = _drawn(trace, peak, service, lengths, seed)
        case _:
            assert_never(trace)
    assert isinstance(found, Requests)
    return found


def _drawn(windows: Windows, peak: float, service: Service, lengths: Lengths, seed: int) -> Requests:
    """Draw requests, and leave some out or send some again: the busiest minute lies above its mean by chance."""
    each_s = lengths.prompt * service.prefill_s + lengths.answer / service.best_capacity
    highest = max(windows.rates) * each_s
    if highest <= 0:
        raise ValueError("no request arrives")
    first = by_scale(windows, peak / highest, lengths, seed)
    assert isinstance(first, Requests)
    return scaled(first, peak / peak_load(service, first))


def _bounded(count: float) -> None:
    if count > MOST_REQUESTS:
        raise ValueError(f"{count:.0f} requests are more than {MOST_REQUESTS}: scale the load down")
