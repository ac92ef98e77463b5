"""Ask a host for its GPUs as the doctor needs them: the driver's own tool once a look, and the agent's count of faults."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from specctl.adapters.transport import Transport
from specctl.control import wire
from specctl.doctor.evidence import GpuLook
from specctl.errors import ConnectError, SpecctlError
from specctl.ops import agent
from specctl.ops.contact import Contact
from specctl.ops.execute import run_there
from specctl.ops.gpu_rows import Row, queries
from specctl.rollout import reading

FIELDS = (
    "index",
    "name",
    "utilization.gpu",
    "power.draw",
    "power.limit",
    "power.default_limit",
    "clocks.sm",
    "clocks.max.sm",
    "memory.used",
    "memory.total",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
)
MOST_BYTES = 1 << 18


def look(contact: Contact) -> tuple[GpuLook, ...]:
    """Return each GPU as the driver's tool tells it now; nothing on a host without the tool."""
    for query in queries(FIELDS):
        text = _output(contact.transport, query)
        if text is not None:
            return tuple(row for line in text.splitlines() if (row := from_row(line, time.monotonic())) is not None)
    return ()


def _output(transport: Transport, argv: Sequence[str]) -> str | None:
    """Return what a program printed; None where it failed or is not there. Raises ConnectError alone."""
    printed, status = b"", ""
    try:
        for name, content in run_there(transport, argv):
            if name == "status":
                status = content.decode()
            elif name == "out" and len(printed) < MOST_BYTES:
                printed += content
    except ConnectError:
        raise
    except (SpecctlError, TimeoutError, OSError):
        return None
    return printed.decode("utf-8", "replace") if status == "0" else None


def from_row(line: str, at_s: float) -> GpuLook | None:
    """Read one row of the tool's table; None of a line that is none. What the driver does not say is None."""
    row = Row.of(line, FIELDS)
    if row is None:
        return None
    return GpuLook(
        index=row.index,
        at_s=at_s,
        model=row.cells["name"] or None,
        busy_ratio=row.ratio("utilization.gpu"),
        power_w=row.number("power.draw"),
        power_limit_w=row.number("power.limit"),
        power_default_w=row.number("power.default_limit"),
        sm_clock_hz=row.hertz("clocks.sm"),
        sm_clock_max_hz=row.hertz("clocks.max.sm"),
        memory_used_bytes=row.bytes("memory.used"),
        memory_total_bytes=row.bytes("memory.total"),
        throttles=row.throttles,
        link_generation=row.whole("pcie.link.gen.current"),
        link_generation_max=row.whole("pcie.link.gen.max"),
        link_width=row.whole("pcie.link.width.current"),
        link_width_max=row.whole("pcie.link.width.max"),
    )


def with_faults(contact: Contact, looks: Sequence[GpuLook]) -> tuple[tuple[GpuLook, ...], bool]:
    """Return the looks with the XIDs that the host's agent counted, and whether an agent watches for them at all."""
    try:
        nvml = reading.mapping(agent.put(contact, wire.Snapshot()).get("nvml"))
    except ConnectError:
        raise
    except SpecctlError:
        return tuple(looks), False
    index_of = {
        reading.text(row.get("uuid")): reading.whole(row.get("index")) for row in reading.rows(nvml.get("gpus"))
    }
    seen: dict[int | None, list[int]] = defaultdict(list)
    for row in reading.rows(nvml.get("xid_counts")):
        xid = reading.whole(row.get("xid"))
        if xid is not None:
            seen[index_of.get(reading.text(row.get("uuid")))].append(xid)
    return tuple(replace(one, xids=tuple(seen.get(one.index, ()))) for one in looks), bool(nvml.get("gpus"))
