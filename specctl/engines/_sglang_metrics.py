"""Where SGLang (read on 0.5.23) and forks of it tell their load: routes, and the few metric families that an agent wants.

Sources: metrics_collector.py and metrics_reporter.py of the wheel, checked on recordings of a real server. The lab engine speaks
the same dialect.
"""

from __future__ import annotations

from specctl.engines._metric_types import Metrics, Over, Wanted

METRICS = Metrics(
    loads="/v1/loads?include=core,spec",
    ready="/ready",
    page="/metrics",
    info="/server_info",
    rank_labels=("tp_rank", "pp_rank", "moe_ep_rank"),
    wanted=(
        Wanted(field="decode_tokens", family="sglang:realtime_tokens_total", where=("mode", "decode")),
        Wanted(field="generated_tokens", family="sglang:generation_tokens_total"),
        Wanted(field="verify_calls", family="sglang:spec_verify_calls_total"),
        Wanted(field="requests", family="sglang:num_requests_total"),
        Wanted(field="aborted", family="sglang:num_aborted_requests_total"),
        Wanted(field="retracted", family="sglang:num_retracted_requests_total"),
        Wanted(field="running", family="sglang:num_running_reqs"),
        Wanted(field="queued", family="sglang:num_queue_reqs"),
        Wanted(field="accept_length", family="sglang:spec_accept_length", over=Over.MAX, zero_is_none=True),
        Wanted(field="draft_tokens", family="sglang:spec_num_draft_tokens", over=Over.MAX),
    ),
)
