"""Read a host's GPUs while load runs: from its agent's newest sample where one runs, else from the driver's own tool.

Nothing here may end a measurement: what cannot be read is no reading. The tool runs as one program for the whole time, niced by
nobody and asked once a second; it ends when its pipe does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from specctl.adapters.transport import Stream
from specctl.control import wire
from specctl.control.sample.gpu import throttles_of
from specctl.errors import SpecctlError
from specctl.measure.load import GpuReading
from specctl.ops import agent
from specctl.ops.contact import Contact
from specctl.ops.gpu_rows import Row, queries
from specctl.rollout import reading

EVERY_S = 1.0
FIELDS = ("index", "power.draw", "power.limit", "clocks.sm", "temperature.gpu", "utilization.gpu", "memory.used")
_SILENCE_S = 10.0


class GpuWatch:
    """Reads the GPUs in a thread of its own; use as a context. `source` says who told: agent, nvidia-smi, or None (nobody yet)."""

    def __init__(self, contact: Contact, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._contact = contact
        self._clock = clock
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._readings: list[GpuReading] = []
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="specctl-gpus")
        self.source: str | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        with self._lock:
            if self._stream is not None:
                self._stream.close()
        self._thread.join(timeout=_SILENCE_S)

    def since(self, at_s: float) -> Sequence[GpuReading]:
        """Return the readings after a moment of the clock."""
        with self._lock:
            return tuple(each for each in self._readings if each.at_s > at_s)

    def _run(self) -> None:
        try:
            if not self._ask_agent():
                self._ask_tool()
        except (SpecctlError, TimeoutError, OSError):
            return  # a host without GPUs, without the tool, or whose connection has gone

    def _ask_agent(self) -> bool:
        """Ask the agent until the end; false where it does not run, or knows of no GPU."""
        while True:
            try:
                told = agent.put(self._contact, wire.Snapshot())
            except SpecctlError:
                return self.source is not None
            found = from_snapshot(told, self._clock())
            if not found and self.source is None:
                return False
            self._keep("agent", found)
            if self._done.wait(EVERY_S):
                return True

    def _ask_tool(self) -> None:
        for query in queries(FIELDS):
            stream = self._contact.transport.open((*query, "-l", f"{EVERY_S:.0f}"))
            with self._lock:
                self._stream = stream
            if self._done.is_set() or self._read_tool(stream):
                stream.close()
                return
            stream.close()

    def _read_tool(self, stream: Stream) -> bool:
        """Read rows until the end; false where the tool told nothing at all, as it does for a field that it does not know."""
        rest = b""
        while not self._done.is_set():
            piece = stream.read(65536, timeout_s=_SILENCE_S)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            found = [row for line in lines if (row := from_row(line.decode("utf-8", "replace"), self._clock()))]
            if found:
                self._keep("nvidia-smi", found)
        return self.source is not None

    def _keep(self, source: str, found: Sequence[GpuReading]) -> None:
        with self._lock:
            self.source = source
            self._readings.extend(found)


def from_row(line: str, at_s: float) -> GpuReading | None:
    """Read one row of the tool's table; None of a line that is none. What the driver does not say is None."""
    row = Row.of(line, FIELDS)
    if row is None:
        return None
    return GpuReading(
        at_s=at_s,
        index=row.index,
        power_w=row.number("power.draw"),
        power_limit_w=row.number("power.limit"),
        sm_clock_hz=row.hertz("clocks.sm"),
        temperature_c=row.number("temperature.gpu"),
        busy_ratio=row.ratio("utilization.gpu"),
        memory_used_bytes=row.bytes("memory.used"),
        throttle=row.throttles,
    )


def from_snapshot(told: Mapping[str, object], at_s: float) -> tuple[GpuReading, ...]:
    """Read the GPUs of the agent's `snapshot`; its sample is as old as `nvml_age_s` says, and an old one tells nothing."""
    age_s = reading.number(told.get("nvml_age_s"))
    if age_s is None or age_s > _SILENCE_S:
        return ()
    return tuple(_of_agent(row, at_s - age_s) for row in reading.rows(reading.mapping(told.get("nvml")).get("gpus")))


def _of_agent(row: Mapping[str, object], at_s: float) -> GpuReading:
    bits = reading.whole(row.get("throttle_bits"))
    processes = row.get("processes")
    return GpuReading(
        at_s=at_s,
        index=reading.whole(row.get("index")) or 0,
        power_w=reading.number(row.get("power_w")),
        power_limit_w=reading.number(row.get("power_limit_w")),
        sm_clock_hz=reading.number(row.get("sm_clock_hz")),
        temperature_c=reading.number(row.get("temperature_c")),
        busy_ratio=reading.number(row.get("busy_ratio")),
        memory_used_bytes=reading.whole(row.get("memory_used_bytes")),
        throttle=None if bits is None else tuple(each.value for each in throttles_of(bits)),
        pids=tuple(pid for each in reading.rows(processes) if (pid := reading.whole(each.get("pid"))) is not None)
        if isinstance(processes, list)
        else None,
    )
