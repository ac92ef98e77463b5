"""What a calibration holds for: the machine, engine and models that it was measured on, held against those that are here.

Figures of another GPU, driver, engine or model say nothing of this host, however alike it looks. What either side does not know is
no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Of one server on one host; None: not known. `gpu`: the driver's name of its GPUs, `gpu_count` how many the server has.

    `packages`: a digest of the engine's installed packages. `context_tokens`: the shortest and the longest context of a request,
    its answer included. `prompts`: the name of the prompt set and its digest.
    """

    gpu: str | None = None
    gpu_count: int | None = None
    driver: str | None = None
    profile: str | None = None
    engine_version: str | None = None
    packages: str | None = None
    target: str | None = None
    draft: str | None = None
    tensor_parallel: int | None = None
    context_tokens: tuple[int, int] | None = None
    prompts: str | None = None


WORDS = {
    "gpu": "the GPU",
    "gpu_count": "the number of GPUs",
    "driver": "the driver",
    "profile": "the engine profile",
    "engine_version": "the engine's version",
    "packages": "the digest of the engine's packages",
    "target": "the target",
    "draft": "the draft",
    "tensor_parallel": "tensor parallelism",
    "context_tokens": "the context",
    "prompts": "the prompt set",
}


def differences(told: Facts, here: Facts) -> tuple[str, ...]:
    """Say which facts of a calibration do not hold here, a sentence each; contexts hold where their bands meet."""
    found = []
    for each in fields(Facts):
        before, now = getattr(told, each.name), getattr(here, each.name)
        if before is None or now is None or before == now:
            continue
        if each.name == "context_tokens":
            if before[0] <= now[1] and now[0] <= before[1]:
                continue
            before, now = (f"{low} to {high} tokens" for low, high in (before, now))
        found.append(f"{WORDS[each.name]} is {now}, and it was measured with {before}")
    return tuple(found)
