"""Checks of memory: do the weights fit the GPUs, and does the host's own memory carry the load."""

from __future__ import annotations

from collections.abc import Sequence

from specctl.rollout.gpu_facts import Gpu
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Level, Verdict, failed, passed, unknown, warned
from specctl.rollout.preflight.words import size

FRACTION = "--mem-fraction-static"
# What is left for the KV cache below this part of a GPU holds few contexts.
LITTLE_KV_RATIO = 0.05
# With these the memory that weights take is not what their files say.
RESHAPES = ("--quantization", "--cpu-offload-gb", "--load-format", "--dtype", "--ep-size", "--pp-size")
# Interpreter, libraries and pinned buffers of one rank of a real engine.
RANK_BYTES = 4 << 30


def _bytes(subject: Subject, which: str) -> int | None:
    """Return the size of a model's weights: what the host says of the folder, else what the inventory says."""
    found = subject.model(which)
    if found is not None and found.size_bytes is not None:
        return found.size_bytes
    model = subject.server.target if which == "target" else subject.server.draft
    return model.size_bytes if model is not None and model.path == subject.path_of(which) else None


def _smallest(gpus: Sequence[Gpu] | None) -> int | None:
    sizes = [gpu.memory_bytes for gpu in gpus or () if gpu.memory_bytes]
    return min(sizes) if sizes else None


def weights_fit(subject: Subject) -> Verdict | None:
    """Compare weights and draft on each GPU with the part of its memory that the engine takes for weights and KV cache."""
    gpus = subject.gpus
    if gpus is None or (not gpus and not subject.server.tp):
        return None
    target, memory = _bytes(subject, "target"), _smallest(gpus)
    draft = _bytes(subject, "draft") if subject.path_of("draft") else 0
    if target is None or memory is None:
        return unknown("the size of the weights, or of the GPUs' memory, is not known")
    given = subject.number(FRACTION)
    fraction = given if given is not None and 0 < given <= 1 else 1.0
    each, room = (target + (draft or 0)) / subject.tp, memory * fraction
    share = f" × {given:g}" if given is not None else ""
    parts = f"weights {size(target / subject.tp)}" + (f" + draft {size(draft / subject.tp)}" if draft else "")
    text = f"{parts} on each GPU, of {size(room)} ({size(memory)}{share})"
    reshaped = next((flag for flag in RESHAPES if subject.flag(flag) is not None), None)
    if each >= room and reshaped is not None:
        return warned(f"{text}: they fit only if {reshaped} makes them smaller")
    if each >= room:
        return failed(f"{text}: they do not fit")
    left = room - each
    if left < memory * LITTLE_KV_RATIO:
        return warned(f"{text}: {size(left)} are left for the KV cache")
    return passed(f"{text}: {size(left)} are left for the KV cache")


def host_memory(subject: Subject) -> Verdict | None:
    """Compare the host's memory with what the ranks need and with the weights, which pass through the page cache."""
    total, free = subject.machine.memory_bytes, subject.machine.memory_free_bytes
    if total is None:
        return unknown("how much memory the host has is not known")
    weights = _bytes(subject, "target") or 0
    cap = subject.server.unit.memory_max
    usable = min(total, int(cap)) if cap and cap.isdecimal() else total
    whose = f"MemoryMax of {size(usable)}" if usable < total else f"{size(total)} of memory"
    ranks = RANK_BYTES * subject.tp
    if subject.gpus and usable < ranks:
        return warned(f"{whose}, and {subject.tp} ranks need about {size(ranks)}")
    running = subject.facts.unit.active == "active"
    if subject.gpus and free is not None and free < ranks and not running:
        return warned(f"{size(free)} of {size(total)} are free, and {subject.tp} ranks need about {size(ranks)}")
    if weights > usable:
        return warned(f"{whose} cannot keep {size(weights)} of weights in its page cache: every start reads the disk")
    set_aside = subject.machine.hugepages_bytes or 0
    if set_aside > total / 2:
        return warned(f"{size(set_aside)} of {size(total)} are set aside for hugepages, which the engine does not use")
    return passed(f"{whose}, {size(free)} free" if free is not None else whose)


CHECKS = (
    Check(
        id="P030",
        title="the weights fit the GPUs",
        worst=Level.FAIL,
        remedy="raise --mem-fraction-static, use more GPUs (tp:), or a smaller or quantised model",
        why="(weights + draft) / tp against memory × --mem-fraction-static (against all memory where it is not set). "
        "Warns when less than 5 % of a GPU is left for the KV cache, and when a flag such as --quantization makes the "
        "sum uncertain.",
        look=weights_fit,
        measures=frozenset(("E041",)),
    ),
    Check(
        id="P031",
        title="the host's memory carries the load",
        worst=Level.WARN,
        remedy="free memory on {host}, raise unit.memory_max, or expect slow starts",
        why="Weights are read through the page cache; each rank needs about 4 GiB beside them. Too little is slow, and at worst "
        "ends with the host's OOM killer.",
        look=host_memory,
    ),
)
