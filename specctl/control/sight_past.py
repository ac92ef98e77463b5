"""The newest past of a server's figures, for sparklines: rings of fixed size, one point a period, a gap where nobody knew.

Pure. A ring is an array of 4-byte floats, so that two hundred servers of eight GPUs fit into a few tens of megabytes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from specctl.control.sight import Sight, Told

POINTS = 600
FIGURES = ("running", "waiting", "tokens_per_s", "accept_length", "kv_ratio")
POWER, BUSY = "gpu power", "gpu busy"

Line = tuple[float | None, ...]
Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Figures of the newest past, oldest first, one each `period_s`, all of one length; None where nobody knew.

    `gpu_power_w`, `gpu_busy_ratio`: by a GPU's index.
    """

    period_s: float
    running: Line = ()
    waiting: Line = ()
    tokens_per_s: Line = ()
    accept_length: Line = ()
    kv_ratio: Line = ()
    gpu_power_w: Mapping[int, Line] = field(default_factory=dict)
    gpu_busy_ratio: Mapping[int, Line] = field(default_factory=dict)


class Ring:
    """The newest figures of one kind."""

    __slots__ = ("_filled", "_next", "_values")

    def __init__(self, points: int, gaps: int = 0) -> None:
        self._values = array("f", [math.nan]) * points
        self._filled = min(gaps, points)
        self._next = self._filled % points

    def push(self, value: float | None) -> None:
        """Add a point; the oldest one goes."""
        self._values[self._next] = math.nan if value is None else value
        self._next = (self._next + 1) % len(self._values)
        self._filled = min(self._filled + 1, len(self._values))

    def line(self) -> Line:
        """Return the points, oldest first."""
        whole = self._values[self._next :] + self._values[: self._next]
        newest = whole[len(whole) - self._filled :]
        return tuple(None if math.isnan(value) else value for value in newest)


class Rings:
    """The rings of one server; `push` once a period, by one thread."""

    def __init__(self, *, period_s: float = 1.0, points: int = POINTS) -> None:
        self._period_s = period_s
        self._points = points
        self._rings: dict[Key, Ring] = {}
        self._pushed = 0

    def begin(self, past: Past) -> None:
        """Take up what was kept elsewhere, as the points before the first push; later it changes nothing."""
        lines: dict[Key, Line] = {(name, None): getattr(past, name) for name in FIGURES}
        length = min(self._points, max(map(len, lines.values())))
        if self._pushed or past.period_s != self._period_s:
            return
        self._pushed = length
        for key, line in lines.items():
            newest = line[max(0, len(line) - length) :]
            for value in (*(None,) * (length - len(newest)), *newest):
                self._ring(key, filled=0).push(value)

    def push(self, sight: Sight | None) -> None:
        """Add a point of each figure that is known and not stale; None: a period of which nothing is known."""
        known = {} if sight is None else dict(_known(sight))
        for key in known:
            self._ring(key, filled=self._pushed)
        for key, ring in self._rings.items():
            ring.push(known.get(key))
        self._pushed += 1

    def past(self) -> Past:
        """Return the lines as they stand."""
        lines = {key: ring.line() for key, ring in self._rings.items()}
        return Past(
            period_s=self._period_s,
            **{name: lines.get((name, None), ()) for name in FIGURES},
            gpu_power_w={gpu: line for (name, gpu), line in lines.items() if name == POWER and gpu is not None},
            gpu_busy_ratio={gpu: line for (name, gpu), line in lines.items() if name == BUSY and gpu is not None},
        )

    def _ring(self, key: Key, *, filled: int) -> Ring:
        """Return the ring of a figure; a new one begins with as many gaps as there were points."""
        if key not in self._rings:
            self._rings[key] = Ring(self._points, filled)
        return self._rings[key]


def _known(sight: Sight) -> Iterator[tuple[Key, float | None]]:
    for name in FIGURES:
        told: Told[float] | None = getattr(sight, name)
        yield (name, None), None if told is None or told.stale else told.value
    for gpu in sight.gpus or ():
        if not gpu.stale:
            yield (POWER, gpu.index), gpu.power_w
            yield (BUSY, gpu.index), gpu.busy_ratio
