"""Checks of the GPUs themselves: driver, number, kind, who uses them, and how they are set."""

from __future__ import annotations

from collections.abc import Sequence

from specctl.rollout.gpu_facts import Gpu, GpuProcess
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Level, Verdict, failed, passed, unknown, warned
from specctl.rollout.preflight.words import numbered, size

# Below this a stranger (a monitor, a display) is a nuisance; above it the engine finds its memory unbalanced and ends.
FOREIGN_BYTES = 1 << 30
# What a driver may keep for itself on an idle GPU.
IDLE_BYTES = 2 << 30
MEMORY_TOLERANCE = 0.9
POWER_TOLERANCE_W = 1.0


def driver(subject: Subject) -> Verdict | None:
    """Look whether the driver answers at all."""
    graphics = subject.graphics
    if graphics.problem is not None:
        mismatch = "mismatch" in graphics.problem.lower()
        remedy = "reboot {host}: the driver was updated under the running kernel" if mismatch else None
        return failed(graphics.problem, remedy.format(host=subject.host.name) if remedy else None)
    if graphics.gpus is not None:
        cuda = f", CUDA {graphics.cuda}" if graphics.cuda else ""
        return passed(f"driver {graphics.driver or 'of unknown version'}{cuda}")
    return unknown("there is no nvidia-smi on the host: nothing is known of GPUs") if subject.uses_gpus else None


def enough(subject: Subject) -> Verdict | None:
    """Look whether the GPUs that the launch wants are there."""
    there = subject.graphics.gpus
    if there is None or not subject.uses_gpus:
        return None
    indices = {gpu.index for gpu in there}
    missing = [index for index in subject.chosen or () if index not in indices]
    if missing:
        return failed(f"{numbered(missing)} of CUDA_VISIBLE_DEVICES is not there: the driver counts {len(there)} GPUs")
    offered = len(subject.chosen or there)
    if subject.tp > offered:
        return failed(
            f"tensor parallel {subject.tp} needs as many GPUs, and {offered} {'is' if offered == 1 else 'are'} offered"
        )
    hardware = subject.host.hardware
    if hardware is not None and hardware.gpu_count is not None and hardware.gpu_count != len(there):
        return warned(f"the driver counts {len(there)} GPUs, hardware {hardware.name} has {hardware.gpu_count}")
    return passed(f"{subject.tp} of {len(there)} GPUs are used")


def _is_model(said: str, named: str) -> bool:
    """Claim that the driver's name of a GPU has every word of the inventory's."""
    words = said.casefold().replace("-", " ").split()
    return all(word in words for word in named.casefold().replace("-", " ").split())


def as_described(subject: Subject) -> Verdict | None:
    """Compare the GPUs with the hardware that the inventory names, and with each other."""
    gpus, hardware = subject.gpus, subject.host.hardware
    if not gpus:
        return None
    models = sorted({gpu.model for gpu in gpus if gpu.model})
    if len(models) > 1:
        return warned(f"the GPUs differ: {' and '.join(models)}; the smallest and slowest sets the pace of all")
    named = hardware.gpu_model if hardware else None
    if named and models and not _is_model(models[0], named):
        return warned(f"the driver calls the GPUs {models[0]}, the inventory {named}")
    meant = hardware.gpu_memory_bytes if hardware else None
    small = [gpu for gpu in gpus if meant and gpu.memory_bytes and gpu.memory_bytes < meant * MEMORY_TOLERANCE]
    if small and meant:
        return warned(f"GPU {small[0].index} has {size(small[0].memory_bytes or 0)}, the inventory says {size(meant)}")
    return passed(models[0]) if models else unknown("the driver does not name the GPUs")


def _foreign(subject: Subject, gpus: Sequence[Gpu]) -> list[GpuProcess] | None:
    """Return the processes on these GPUs that are not the managed unit's; None where that cannot be told."""
    processes, own = subject.graphics.processes, subject.facts.own_pids
    if processes is None:
        return None
    uuids = {gpu.uuid for gpu in gpus if gpu.uuid}
    here = [one for one in processes if one.gpu is None or not uuids or one.gpu in uuids]
    if here and own is None:
        return None
    return [one for one in here if one.pid not in (own or ())]


def foreign(subject: Subject) -> Verdict | None:
    """Look for processes on the GPUs that are not the managed unit's own."""
    gpus = subject.gpus
    if not gpus:
        return None
    found = _foreign(subject, gpus)
    if found is None:
        return unknown("which processes use the GPUs, or whose they are, is not known")
    if not found:
        return passed("nobody but the server itself" if subject.graphics.processes else "no process at all")
    places = {gpu.uuid: gpu.index for gpu in gpus}
    lines = [_line(one, places.get(one.gpu)) for one in found[:4]]
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    pids = " ".join(str(pid) for pid in dict.fromkeys(one.pid for one in found))
    remedy = f"specctl exec --host {subject.host.name} -- kill {pids}"
    heavy = any((one.used_bytes or 0) >= FOREIGN_BYTES for one in found)
    return (failed if heavy else warned)("; ".join(lines) + more, remedy)


def _line(process: GpuProcess, index: int | None) -> str:
    place = "a GPU" if index is None else f"GPU {index}"
    held = "an unknown amount" if process.used_bytes is None else size(process.used_bytes)
    return f"pid {process.pid} ({process.name}) holds {held} on {place}"


def held_by_nobody(subject: Subject) -> Verdict | None:
    """Look for memory in use while no process is there to use it: what a killed server left, or a process of another container."""
    gpus, processes = subject.gpus, subject.graphics.processes
    if not gpus or processes is None or subject.facts.unit.active == "active":
        return None
    busy = {process.gpu for process in processes}
    ghosts = [gpu for gpu in gpus if gpu.uuid not in busy and (gpu.used_bytes or 0) > IDLE_BYTES and None not in busy]
    if not ghosts:
        return passed(f"each is below {size(IDLE_BYTES)}")
    named = ", ".join(f"{size(gpu.used_bytes or 0)} on GPU {gpu.index}" for gpu in ghosts[:4])
    return warned(f"{named} in use by no process that can be seen here")


def persistence(subject: Subject) -> Verdict | None:
    """Look whether the driver stays loaded while nobody uses it."""
    known = [gpu for gpu in subject.gpus or () if gpu.persistence is not None]
    if not known:
        return None
    off = [gpu.index for gpu in known if not gpu.persistence]
    return (
        warned(f"persistence mode is off on {numbered(off)}")
        if off
        else passed(f"on {numbered(gpu.index for gpu in known)}")
    )


def power(subject: Subject) -> Verdict | None:
    """Look whether somebody lowered the power limit."""
    pairs = [(g, g.power_limit_w, g.power_default_w) for g in subject.gpus or ()]
    known = [(gpu, cap, normal) for gpu, cap, normal in pairs if cap is not None and normal is not None]
    if not known:
        return None
    low = [(gpu, cap, normal) for gpu, cap, normal in known if cap < normal - POWER_TOLERANCE_W]
    if not low:
        return passed(f"{known[0][2]:.0f} W")
    gpu, cap, normal = low[0]
    more = f" (and {len(low) - 1} more)" if len(low) > 1 else ""
    return warned(f"GPU {gpu.index}{more} is limited to {cap:.0f} W, its default is {normal:.0f} W")


def mig(subject: Subject) -> Verdict | None:
    """Look whether a GPU is cut into instances, which cannot work together."""
    known = [gpu for gpu in subject.gpus or () if gpu.mig is not None]
    if not known:
        return None
    cut = [gpu.index for gpu in known if gpu.mig]
    if not cut:
        return passed(f"MIG is off on {numbered(gpu.index for gpu in known)}")
    text = f"MIG is on: {numbered(cut)}"
    if subject.tp > 1:
        return failed(f"{text}; instances cannot reach each other, which tensor parallel {subject.tp} needs")
    return warned(f"{text}; the engine gets one instance, not the whole GPU")


CHECKS = (
    Check(
        id="P020",
        title="the GPU driver answers",
        worst=Level.FAIL,
        remedy="specctl exec --host {host} -- nvidia-smi; a GPU that is lost needs a reboot",
        why="nvidia-smi's own words are shown, such as a driver that was updated under the running kernel.",
        look=driver,
    ),
    Check(
        id="P021",
        title="the GPUs that are asked for are there",
        worst=Level.FAIL,
        remedy="correct tp: and gpus: of server {server}, or find the GPU that fell off the bus (dmesg)",
        why="Compares tensor parallelism, CUDA_VISIBLE_DEVICES and the hardware's count with what the driver counts.",
        look=enough,
        measures=frozenset(("E042",)),
    ),
    Check(
        id="P022",
        title="the GPUs are those of the inventory",
        worst=Level.WARN,
        remedy="correct the host's hardware: in the inventory",
        why="Another kind of GPU has other limits; settings of the hardware's layer may not fit it.",
        look=as_described,
    ),
    Check(
        id="P023",
        title="no other process uses the GPUs",
        worst=Level.FAIL,
        remedy="end it, or give server {server} other GPUs",
        why="What lies in the managed unit's own control group is not foreign. Fails from 1 GiB on, warns below: the engine ends "
        "with “memory capacity is unbalanced”, or without memory, after minutes.",
        look=foreign,
    ),
    Check(
        id="P024",
        title="no GPU memory is held without a process",
        worst=Level.WARN,
        remedy="specctl exec --host {host} -- fuser -v /dev/nvidia0 finds it; else the GPU must be reset",
        why="A server that was killed hard, or a process of another container, holds memory that no list of processes shows.",
        look=held_by_nobody,
    ),
    Check(
        id="P025",
        title="persistence mode is on",
        worst=Level.WARN,
        remedy="specctl exec --host {host} -- systemctl enable --now nvidia-persistenced",
        why="Without it the driver is loaded anew whenever the last process ends: slow starts, and settings are lost.",
        look=persistence,
    ),
    Check(
        id="P026",
        title="the power limit is the default",
        worst=Level.WARN,
        remedy="specctl exec --host {host} -- nvidia-smi -pl WATTS, or waive P026 where it is meant",
        why="A lowered limit makes two hosts, or two measurements, incomparable.",
        look=power,
    ),
    Check(
        id="P027",
        title="no GPU is cut into instances",
        worst=Level.FAIL,
        remedy="specctl exec --host {host} -- nvidia-smi -mig 0, then reset the GPUs",
        why="Fails with tensor parallelism over more than one GPU, warns else.",
        look=mig,
    ),
)
