"""The server's readings as values: what gauges and /v1/loads show, and when SGLang lets them move.

Everything here is replaced whole by the scheduler and read by any thread; nothing here computes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The scheduler's gauges as of their last refresh; spec values hold the last window and never go back to 0 when idle."""

    running: int = 0
    queued: int = 0
    used_tokens: int = 0
    available_tokens: int = 0
    decode_sum_seq_lens: int = 0
    token_usage: float = 0.0
    gen_throughput: float = 0.0
    spec_accept_length: float = 0.0
    spec_accept_rate: float = 0.0
    spec_num_steps: int = 0
    spec_num_draft_tokens: int = 0
    retracted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot:
    """What /v1/loads answers without asking the scheduler; `at` is Unix time of the last publication."""

    at: float
    running: int = 0
    waiting: int = 0
    waiting_tokens: int = 0
    used_tokens: int = 0
    token_usage: float = 0.0
    gen_throughput: float = 0.0
    prefill_tokens: int = 0
    prefill_busy_us: int = 0
    decode_moments: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    accept_length: float | None = None
    accept_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupTimes:
    """How long each part of the start took, in seconds."""

    load_weight: float
    kv_cache_allocation: float
    scheduler_e2e: float
    cuda_graph: float
    tokenizer_e2e: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What the models and the KV pool occupy, in bytes, and what was free when the server came up."""

    weight_bytes: int
    kv_bytes: int
    available_bytes: int
    capacity_tokens: int
