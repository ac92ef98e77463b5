"""Look around a segment: who else used the host's GPUs and processors, how warm the GPUs were, and whether it was one start."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from specctl.errors import SpecctlError
from specctl.fleet.types import Server, Via
from specctl.measure.ab_types import Around
from specctl.ops.contact import Contact
from specctl.ops.execute import run_there
from specctl.ops.preflight import gather
from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.gpu_facts import Graphics

# /proc/stat counts in these, on every Linux (USER_HZ, proc(5)).
TICKS_S = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """Processor seconds since boot: of all, stolen by the hypervisor, of the server, and our own where this is our machine."""

    at_s: float
    busy_s: float
    stolen_s: float
    cores: int
    server_s: float
    ours_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The host at one moment; `invocation` and `restarts` tell one start of the server from another."""

    strangers: tuple[str, ...] | None
    processors: Processors | None
    invocation: str | None
    restarts: int | None
    temperature_c: float | None = None


def look(contact: Contact, server: Server, *, gpu: bool) -> Look:
    """Look at the host now; the GPU driver is asked where the engine computes on GPUs."""
    facts = gather(contact, (server,), brief=not gpu)
    own = facts.servers[server.name]
    heats = [each.temperature_c for each in facts.graphics.gpus or () if each.temperature_c is not None]
    return Look(
        strangers=strangers(facts, own, server) if gpu else (),
        processors=processors(contact, own),
        invocation=own.unit.invocation,
        restarts=own.unit.restarts,
        temperature_c=max(heats, default=None),
    )


def strangers(facts: HostFacts, own: ServerFacts, server: Server) -> tuple[str, ...] | None:
    """Name the processes on the server's GPUs that are not the server's; None where that cannot be told."""
    graphics: Graphics = facts.graphics
    if graphics.processes is None or own.own_pids is None:
        return None
    ours = {each.uuid for each in graphics.gpus or () if not server.gpus or each.index in server.gpus}
    found = [p for p in graphics.processes if p.pid not in own.own_pids and (p.gpu is None or p.gpu in ours)]
    return tuple(sorted(f"{process.name} {process.pid}" for process in found))


def processors(contact: Contact, own: ServerFacts) -> Processors | None:
    """Read what the host's processors have done since boot; None where /proc does not say."""
    pids = own.own_pids or ()
    try:
        pieces = run_there(contact.transport, ["cat", "/proc/stat", *(f"/proc/{pid}/stat" for pid in pids)])
        text = b"".join(content for name, content in pieces if name == "out").decode("utf-8", "replace")
    except SpecctlError:
        return None
    times = os.times()
    ours_s = times.user + times.system + times.children_user + times.children_system
    return parse(text, len(pids), at_s=time.monotonic(), ours_s=ours_s if contact.host.via is Via.LOCAL else 0.0)


def parse(text: str, processes: int, *, at_s: float, ours_s: float) -> Processors | None:
    """Read /proc/stat followed by the stat lines of so many processes (proc(5)); None where it is no such text."""
    lines = text.splitlines()
    total = next((line.split()[1:] for line in lines if line.startswith("cpu ")), [])
    cores = sum(line.startswith("cpu") and line[3:4].isdigit() for line in lines)
    if len(total) < 8 or cores == 0 or not all(field.isdigit() for field in total):
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) / TICKS_S for field in total[:8])
    own = [line.rpartition(")")[2].split() for line in lines if line[:1].isdigit() and ")" in line]
    if len(own) < processes:
        return None
    server_s = sum((int(fields[11]) + int(fields[12])) / TICKS_S for fields in own)
    busy_s = user + nice + system + irq + softirq
    return Processors(at_s=at_s, busy_s=busy_s, stolen_s=steal, cores=cores, server_s=server_s, ours_s=ours_s)


def around(before: Look, after: Look, rest: Mapping[str, float | None]) -> Around:
    """Return what was so between two looks; `rest`: temperature_c, clock_hz and power_w of the GPUs before."""
    foreign, stolen, cores = busy(before.processors, after.processors)
    named = None
    if before.strangers is not None and after.strangers is not None:
        named = tuple(sorted({*before.strangers, *after.strangers}))
    return Around(
        strangers=named,
        foreign_cores=foreign,
        cores=cores,
        stolen_ratio=stolen,
        temperature_c=rest.get("temperature_c"),
        clock_hz=rest.get("clock_hz"),
        power_w=rest.get("power_w"),
        upset=upset(before, after),
    )


def busy(before: Processors | None, after: Processors | None) -> tuple[float | None, float | None, int | None]:
    """Return cores that others used between two looks, the part of all time that was stolen, and how many cores there are."""
    if before is None or after is None or after.at_s <= before.at_s:
        return None, None, None
    span_s = after.at_s - before.at_s
    known = (after.server_s - before.server_s) + (after.ours_s - before.ours_s)
    foreign_s = (after.busy_s - before.busy_s) - known
    return max(foreign_s, 0.0) / span_s, (after.stolen_s - before.stolen_s) / span_s / after.cores, after.cores


def upset(before: Look, after: Look) -> str | None:
    """Say why two looks are not at one start of the server."""
    if before.invocation != after.invocation:
        return "the server was started anew"
    if before.restarts != after.restarts:
        return "the service manager started the server again"
    return None
