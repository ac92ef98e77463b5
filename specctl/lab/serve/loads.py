"""/v1/loads: what the scheduler last published, in SGLang's two formats.

It never asks the scheduler, so a hung one shows by the age of its numbers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from specctl.lab.serve import dialect
from specctl.lab.serve.readings import Footprint, LoadSnapshot

GIB = 1 << 30
SECTIONS = ("core", "memory", "spec", "lora", "disagg", "queues")
ALL = "all"


class UnknownSectionError(ValueError):
    """An `include` that SGLang 0.5.23 does not know; it answers 500, and so does the lab."""


def sections(include: str | None) -> frozenset[str]:
    """Return the sections that `include` names; none named means all."""
    names = [name.strip() for name in (include or ALL).split(",")]
    unknown = next((name for name in names if name not in {*SECTIONS, ALL}), None)
    if unknown is not None:
        raise UnknownSectionError(f"unknown section: {unknown}")
    return frozenset(SECTIONS if ALL in names else names)


def document(
    snapshot: LoadSnapshot, footprint: Footprint, *, max_running: int, wanted: frozenset[str], now: dt.datetime
) -> dict[str, object]:
    """Return the JSON answer; the outer time stamp is now, the inner one that of the publication."""
    return {
        "timestamp": now.isoformat(),
        "version": dialect.VERSION,
        "accelerator": None,
        "num_accelerators": 1,
        "loads": [load(snapshot, footprint, max_running=max_running, wanted=wanted)],
    }


def load(
    snapshot: LoadSnapshot, footprint: Footprint, *, max_running: int, wanted: frozenset[str]
) -> dict[str, object]:
    """Return the one rank's load."""
    total = snapshot.used_tokens + snapshot.waiting_tokens
    return {
        "timestamp": snapshot.at,
        "dp_rank": 0,
        "num_running_reqs": snapshot.running,
        "num_waiting_reqs": snapshot.waiting,
        "num_waiting_uncached_tokens": snapshot.waiting_tokens,
        "num_used_tokens": snapshot.used_tokens,
        "num_total_tokens": total,
        "num_active_tokens": total,
        "num_prealloc_ready_tokens": 0,
        "max_total_num_tokens": footprint.capacity_tokens,
        "max_running_requests": max_running,
        "token_usage": snapshot.token_usage,
        "gen_throughput": snapshot.gen_throughput,
        "cache_hit_rate": 0.0,
        "utilization": 0.0,
        "total_prefill_uncached_tokens": snapshot.prefill_tokens,
        "total_prefill_busy_us": snapshot.prefill_busy_us,
        "decode_moments": list(snapshot.decode_moments),
        **_sections(snapshot, footprint, wanted),
    }


def _sections(snapshot: LoadSnapshot, footprint: Footprint, wanted: frozenset[str]) -> dict[str, object]:
    """Return the nested sections that are wanted and known."""
    nested: dict[str, object] = {}
    if "memory" in wanted:
        nested["memory"] = {
            "weight_gb": round(footprint.weight_bytes / GIB, 3),
            "kv_cache_gb": round(footprint.kv_bytes / GIB, 3),
            "graph_gb": 0.0,
            "token_capacity": footprint.capacity_tokens,
        }
    if "spec" in wanted and snapshot.accept_length is not None:
        nested["speculative"] = {"accept_length": snapshot.accept_length, "accept_rate": snapshot.accept_rate or 0.0}
    if "disagg" in wanted:
        nested["disaggregation"] = {
            "mode": "null",
            "prefill_bootstrap_queue_reqs": 0,
            "prefill_inflight_queue_reqs": 0,
            "decode_prealloc_queue_reqs": 0,
            "decode_transfer_queue_reqs": 0,
            "decode_retracted_queue_reqs": 0,
            "kv_transfer_speed_gb_s": 0.0,
            "kv_transfer_latency_ms": 0.0,
        }
    if "queues" in wanted:
        nested["queues"] = {"waiting": snapshot.waiting, "grammar": 0, "paused": 0, "retracted": 0, "prealloc_ready": 0}
    return nested


_PREFIXES = {"memory": "memory_", "speculative": "spec_", "disaggregation": "disagg_", "queues": "queues_"}


def prometheus(entry: Mapping[str, object]) -> str:
    """Return one rank's load as Prometheus text, nested numbers under their section's prefix."""
    lines: list[str] = []
    for name, value in _numbers(entry):
        lines += (f"# TYPE sglang_{name} gauge", f'sglang_{name}{{dp_rank="0"}} {value}')
    return "\n".join(lines) + "\n"


def _numbers(entry: Mapping[str, object]) -> Iterator[tuple[str, int | float]]:
    """Yield the numbers of a load, flattened; the rank is a label and the moments have no gauge."""
    for name, value in entry.items():
        if isinstance(value, Mapping):
            yield from ((_PREFIXES[name] + inner, number) for inner, number in _numbers(value))
        elif isinstance(value, int | float) and name != "dp_rank":
            yield name, value
