"""GPUs of a sight, from rows of the agent's NVML sample or of the session's look; pure. What a row does not say is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specctl.control.sample.gpu import GpuSample
from specctl.control.sight import GpuSight, Source
from specctl.rollout import reading


def of_agent(sample: Mapping[str, object], age_s: float | None, wanted: Sequence[int]) -> tuple[GpuSight, ...] | None:
    """Return the GPUs of an agent's NVML sample, those of `wanted` indexes (none named: all); None where it has no sample."""
    if not sample or sample.get("trouble") is not None:
        return None
    facts = {reading.text(row.get("uuid")): row for row in reading.rows(sample.get("facts"))}
    rows = [{**_known(facts.get(reading.text(row.get("uuid")))), **row} for row in reading.rows(sample.get("gpus"))]
    return _gpus(rows, age_s, Source.AGENT, wanted)


def of_facts(value: object, wanted: Sequence[int], age_s: float) -> tuple[GpuSight, ...] | None:
    """Return the GPUs that a session's look told `age_s` ago, those of `wanted` indexes (none named: all); None where unknown."""
    return _gpus(reading.rows(value), age_s, Source.FACTS, wanted) if isinstance(value, list) else None


def trouble_of(sample: Mapping[str, object]) -> str | None:
    """Return why an agent has no figures of GPUs, in words."""
    return reading.text(reading.mapping(sample.get("trouble")).get("detail"))


def _known(row: Mapping[str, object] | None) -> Mapping[str, object]:
    return {} if row is None else {"model": row.get("name"), "sm_clock_max_hz": row.get("sm_clock_max_hz")}


def _gpus(
    rows: Sequence[Mapping[str, object]], age_s: float | None, source: Source, wanted: Sequence[int]
) -> tuple[GpuSight, ...]:
    found = [gpu for row in rows if (gpu := _gpu(row, age_s, source)) is not None]
    return tuple(sorted((gpu for gpu in found if not wanted or gpu.index in wanted), key=lambda gpu: gpu.index))


def _gpu(row: Mapping[str, object], age_s: float | None, source: Source) -> GpuSight | None:
    index = reading.whole(row.get("index"))
    if index is None:
        return None
    uuid, bits = reading.text(row.get("uuid")), reading.whole(row.get("throttle_bits"))
    sample = GpuSample(uuid=uuid or "", index=index, throttle_bits=bits)
    temperature = reading.number(row.get("temperature_c"))
    return GpuSight(
        index=index,
        age_s=age_s,
        source=source,
        uuid=uuid,
        model=reading.text(row.get("model")),
        memory_used_bytes=reading.whole(row.get("memory_used_bytes")),
        memory_total_bytes=reading.whole(row.get("memory_total_bytes")),
        power_w=reading.number(row.get("power_w")),
        power_limit_w=reading.number(row.get("power_limit_w")),
        busy_ratio=reading.number(row.get("busy_ratio")),
        temperature_c=None if temperature is None else round(temperature),
        sm_clock_hz=reading.whole(row.get("sm_clock_hz")),
        sm_clock_max_hz=reading.whole(row.get("sm_clock_max_hz")),
        memory_clock_hz=reading.whole(row.get("memory_clock_hz")),
        throttles=sample.throttles,
        slowing=sample.slowing,
    )
