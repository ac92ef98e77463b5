"""Ask a host for its GPUs as the doctor needs them: the driver's own tool once a look, and the agent's count of faults."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from specctl.adapters.transport import Transport
from specctl.control import wire
from specctl.control.sample.gpu import Throttle
from specctl.doctor.evidence import GpuLook
from specctl.errors import ConnectError, SpecctlError
from specctl.ops import agent
from specctl.ops.contact import Contact
from specctl.ops.execute import run_there
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
# The older name is the only one that drivers before R535 know, and newer ones still take it.
REASONS = "clocks_throttle_reasons.active"
MOST_BYTES = 1 << 18
MEGA, MEBI = 1e6, 1 << 20
_HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")
_BITS = tuple(Throttle)


def look(contact: Contact) -> tuple[GpuLook, ...]:
    """Return each GPU as the driver's tool tells it now; nothing on a host without the tool."""
    for fields in ((*FIELDS, REASONS), FIELDS):
        query = ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
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
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) < len(FIELDS) or not cells[0].isdigit() or len(cells[0]) > 4:
        return None
    numbers = [_number(cell) for cell in cells[2 : len(FIELDS)]]
    busy, draw, limit, default, clock, most, used, total, *link = numbers
    generation, generation_max, width, width_max = (None if each is None else int(each) for each in link)
    reasons = cells[len(FIELDS)] if len(cells) > len(FIELDS) else ""
    return GpuLook(
        index=int(cells[0]),
        at_s=at_s,
        model=cells[1] or None,
        busy_ratio=None if busy is None else busy / 100,
        power_w=draw,
        power_limit_w=limit,
        power_default_w=default,
        sm_clock_hz=None if clock is None else clock * MEGA,
        sm_clock_max_hz=None if most is None else most * MEGA,
        memory_used_bytes=None if used is None else int(used) * MEBI,
        memory_total_bytes=None if total is None else int(total) * MEBI,
        throttles=_reasons(int(reasons, 16)) if _HEX.fullmatch(reasons) else None,
        link_generation=generation,
        link_generation_max=generation_max,
        link_width=width,
        link_width_max=width_max,
    )


def _reasons(bits: int) -> tuple[str, ...]:
    return tuple(reason.value for bit, reason in enumerate(_BITS) if bits >> bit & 1)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


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
