"""The families of /metrics: SGLang's names, types and labels, with true numbers of this server.

Before the first request only the families of the start exist, as in the real server; the scheduler's appear with its first prefill.
"""

from __future__ import annotations

from collections.abc import Iterator

from specctl.lab.serve.exposition import Family, Labels, Value
from specctl.lab.serve.histogram import Distribution, Histogram
from specctl.lab.serve.ledger import Ledger
from specctl.lab.serve.loads import GIB
from specctl.lab.serve.readings import Gauges
from specctl.lab.serve.service import Service

PREFIX = "sglang:"
GRAPH_PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
CAPTURED_PHASE = "target_verify"


def families(service: Service, *, cpu_s: float) -> Iterator[Family]:
    """Yield every family that the server exposes now; `cpu_s` is the process' CPU time so far."""
    yield from _scheduler_counters(service, cpu_s)
    yield from _http(service.ledger)
    yield from _start(service)
    gauges = service.scheduler.reporter.gauges
    if gauges is not None:
        yield from _gauges(service, gauges)
        yield from _finished(service)
        yield from _histograms(service)


def rank(service: Service, **more: str) -> Labels:
    """Return the labels of a scheduler's series."""
    return {**model(service), "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0", **more}


def model(service: Service, **more: str) -> Labels:
    """Return the labels of a tokenizer's series."""
    return {"engine_type": "unified", "model_name": service.launch.options.served_model_name, **more}


def _family(kind: str, name: str, meaning: str, *samples: tuple[Labels, Value]) -> Family:
    """Return a family under SGLang's prefix."""
    return Family(name=PREFIX + name, kind=kind, meaning=meaning, samples=samples)


def _scheduler_counters(service: Service, cpu_s: float) -> Iterator[Family]:
    """Yield the counters that grow with every iteration."""
    totals = service.scheduler.reporter.totals
    labels = rank(service)
    modes = ("input", "device_hit", "host_hit", "storage_hit")
    yield _family(
        "counter",
        "prefill_effective_tokens_total",
        "Prompt tokens by where they came from; the lab caches none.",
        *((rank(service, mode=mode), totals.prefill_tokens if mode == "input" else 0) for mode in modes),
    )
    yield _family(
        "counter", "scheduler_idle_seconds_total", "Time without running or queued work.", (labels, totals.idle_s)
    )
    yield _family(
        "counter", "scheduler_process_cpu_seconds_total", "CPU time of the scheduler's process.", (labels, cpu_s)
    )
    stages = {"run_batch": totals.prefill_busy_s + totals.decode_busy_s, "idle": totals.idle_s}
    yield _family(
        "counter",
        "scheduler_stage_seconds_total",
        "Time of the scheduler's loop by stage.",
        *((rank(service, category=stage, forward_overlap="none"), spent) for stage, spent in stages.items()),
    )
    if service.scheduler.reporter.gauges is None:
        return
    passes = {"prefill_none": totals.prefill_passes, "decode_none": totals.decode_passes}
    yield _family(
        "counter",
        "cuda_graph_passes_total",
        "Forward passes by graph mode.",
        *((rank(service, mode=mode), count) for mode, count in passes.items()),
    )
    tokens = {"prefill_compute": totals.prefill_tokens, "decode": totals.decode_tokens}
    yield _family(
        "counter",
        "realtime_tokens_total",
        "Tokens processed, as they come.",
        *((rank(service, mode=mode), count) for mode, count in tokens.items()),
    )


def _http(ledger: Ledger) -> Iterator[Family]:
    """Yield the counters of HTTP itself."""
    active = tuple(
        ({"endpoint": path, "method": method}, count) for (path, method), count in ledger.http_active.items()
    )
    seen = tuple(
        ({"endpoint": path, "method": method}, count) for (path, method), count in ledger.http_requests.items()
    )
    answered = tuple(
        ({"endpoint": path, "method": method, "status_code": str(code)}, count)
        for (path, method, code), count in ledger.http_responses.items()
    )
    yield _family("gauge", "http_requests_active", "HTTP requests being served.", *active)
    yield _family("counter", "http_requests_total", "HTTP requests by endpoint and method.", *seen)
    yield _family("counter", "http_responses_total", "HTTP answers by endpoint and status.", *answered)


def _start(service: Service) -> Iterator[Family]:
    """Yield the gauges of the start, which never change."""
    labels, footprint, times = rank(service), service.footprint, service.startup
    facts: tuple[tuple[str, str, float], ...] = (
        ("max_total_num_tokens", "Tokens that the KV pool holds.", footprint.capacity_tokens),
        ("weight_memory_usage_gb", "Memory of the weights.", footprint.weight_bytes / GIB),
        ("kv_cache_memory_usage_gb", "Memory of the KV pool.", footprint.kv_bytes / GIB),
        ("page_size", "Tokens of a KV page.", service.launch.options.page_size),
        ("num_pages", "Pages of the KV pool.", footprint.capacity_tokens // service.launch.options.page_size),
        ("context_len", "Longest context.", service.launch.context_length),
        ("startup_available_gpu_memory_gb", "Memory available at start.", footprint.available_bytes / GIB),
    )
    for name, meaning, value in facts:
        yield _family("gauge", name, meaning, (labels, value))
    yield _family(
        "gauge",
        "graph_memory_usage_gb",
        "Memory of captured graphs; the lab captures none.",
        *((rank(service, phase=name), 0.0) for name in GRAPH_PHASES),
    )
    yield _histogram(
        "get_loads_duration_seconds", "Time spent on /v1/loads.", (model(service), service.ledger.loads_time)
    )
    phases = ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")
    yield _family(
        "gauge",
        "startup_time_seconds",
        "Duration of the start by phase.",
        *((model(service, phase=name), getattr(times, name)) for name in phases),
    )
    yield _family(
        "gauge",
        "startup_cuda_graph_time_seconds",
        "Duration of graph capture by phase.",
        *((model(service, phase=name), times.cuda_graph if name == CAPTURED_PHASE else 0.0) for name in GRAPH_PHASES),
    )


def _gauges(service: Service, gauges: Gauges) -> Iterator[Family]:
    """Yield the scheduler's gauges as of their last refresh."""
    labels = rank(service)
    values: tuple[tuple[str, str, float], ...] = (
        ("num_running_reqs", "Running requests.", gauges.running),
        ("num_queue_reqs", "Requests in the waiting queue.", gauges.queued),
        ("num_grammar_queue_reqs", "Requests waiting for a grammar; always 0 here.", 0),
        ("gen_throughput", "Generated tokens a second in the last decode window.", gauges.gen_throughput),
        ("cache_hit_rate", "Prefix cache hits; the lab caches none.", 0.0),
        ("decode_sum_seq_lens", "Summed lengths of the sequences in decode.", gauges.decode_sum_seq_lens),
        ("token_usage", "Used share of the KV pool.", round(gauges.token_usage, 2)),
        ("full_token_usage", "Used share of the KV pool, not rounded.", gauges.token_usage),
        ("num_used_tokens", "Used tokens of the KV pool.", gauges.used_tokens),
        ("kv_available_tokens", "Free tokens of the KV pool.", gauges.available_tokens),
        ("kv_evictable_tokens", "Cached tokens that could be evicted; the lab caches none.", 0),
        ("kv_used_tokens", "Tokens of the KV pool in use.", gauges.used_tokens),
        ("spec_accept_length", "Accepted drafts plus bonus token per verify, last window.", gauges.spec_accept_length),
        ("spec_accept_rate", "Accepted over proposed drafts, last window.", gauges.spec_accept_rate),
        ("spec_num_steps", "Active speculative_num_steps.", gauges.spec_num_steps),
        (
            "spec_num_draft_tokens",
            "Active draft tokens a verify, anchor or root included.",
            gauges.spec_num_draft_tokens,
        ),
        ("utilization", "Dead: always 0, as in the real server.", 0.0),
        ("fwd_occupancy", "No GPU: not a number, as in the real server on a CPU.", float("nan")),
        ("new_token_ratio", "The lab reserves whole contexts.", 1.0),
        ("is_cuda_graph", "Whether a graph ran the last batch.", 0.0),
    )
    for name, meaning, value in values:
        yield _family("gauge", name, meaning, (labels, value))
    worker = rank(service, pid=str(service.pid))
    yield _family("gauge", "num_retracted_reqs", "Retracted requests.", (worker, gauges.retracted))
    yield _family("gauge", "num_paused_reqs", "Paused requests; stays 0, as in the real server.", (worker, 0))


def _finished(service: Service) -> Iterator[Family]:
    """Yield the counters that grow only when a request finishes."""
    ledger = service.ledger
    for name, meaning, counter in (
        ("prompt_tokens_total", "Prompt tokens of finished requests.", ledger.prompt_tokens),
        ("generation_tokens_total", "Generated tokens of finished requests.", ledger.generation_tokens),
        ("num_requests_total", "Finished requests.", ledger.requests),
    ):
        yield _family(
            "counter", name, meaning, *((_streaming(service, kind), counter[kind]) for kind in sorted(ledger.requests))
        )
    if service.scheduler.speculation.draft_tokens is not None or ledger.verify_calls:
        yield _family(
            "counter",
            "spec_verify_calls_total",
            "Verify calls of finished requests.",
            (model(service), ledger.verify_calls),
        )
    if ledger.aborted:
        yield _family("counter", "num_aborted_requests_total", "Aborted requests.", (model(service), ledger.aborted))


def _histograms(service: Service) -> Iterator[Family]:
    """Yield the histograms."""
    ledger, reporter = service.ledger, service.scheduler.reporter
    for name, meaning, by_kind in (
        ("time_to_first_token_seconds", "Time to the first token.", ledger.first_token),
        ("e2e_request_latency_seconds", "Latency of whole requests.", ledger.latency),
        (
            "request_time_per_output_token_seconds",
            "Time per output token after the first, by request.",
            ledger.per_token,
        ),
    ):
        yield _histogram(
            name, meaning, *((_streaming(service, kind), histogram) for kind, histogram in tuple(by_kind.items()))
        )
    for name, meaning, histogram in (
        ("prompt_tokens_histogram", "Prompt lengths.", ledger.prompt_sizes),
        ("uncached_prompt_tokens_histogram", "Prompt lengths not served by a cache.", ledger.prompt_sizes),
        ("generation_tokens_histogram", "Answer lengths.", ledger.generation_sizes),
    ):
        yield _histogram(name, meaning, (model(service), histogram))
    if ledger.token_gap.read().count:
        yield _histogram(
            "inter_token_latency_seconds",
            "Wait for a delta, shared over its tokens.",
            (model(service), ledger.token_gap),
        )
    yield _histogram("queue_time_seconds", "Time in the queue.", (rank(service), reporter.queue_time))
    stages = tuple((rank(service, stage=stage), histogram) for stage, histogram in reporter.stages.items())
    yield _histogram("per_stage_req_latency_seconds", "Latency of each stage of requests.", *stages)


def _histogram(name: str, meaning: str, *samples: tuple[Labels, Histogram]) -> Family:
    """Return a histogram's family as it stands."""
    read: tuple[tuple[Labels, Distribution], ...] = tuple((labels, histogram.read()) for labels, histogram in samples)
    return _family("histogram", name, meaning, *read)


def _streaming(service: Service, kind: bool) -> Labels:  # noqa: FBT001  # it is the label's value
    """Return the labels of a series that tells streaming requests apart."""
    return model(service, is_streaming=str(kind).lower())
