"""What the real server answers and the lab does not, each with its reason; the contract test fails when a list is not exact."""

from __future__ import annotations

MODEL_INFO = {".embedding"}
"""Facts of embedding models."""
SERVER_INFO = {".hicache_object_layout"}
"""A cache tier that the lab lacks. The hundreds of arguments left out are in left_out_server_args.txt."""
SERVER_INFO_OWN = {".speculative_ddtree_budget", ".speculative_ddtree_topk_cap"}
"""Arguments of the lab that stock SGLang does not have."""
ROUTES = {"/openapi.json", "/docs", "/hicache/storage-backend"}
"""Documentation pages of the web framework, and a cache tier that the lab lacks."""
METRICS = {
    # One process, one rank: nothing is synchronised between ranks.
    *("dp_attention_tokens_total", "dp_attention_steps_total", "dp_attention_pairs_total"),
    *("dp_attention_token_imbalance_ratio", "dp_attention_sync_wait_seconds"),
    # No routing keys.
    *(
        "routing_keys_active",
        "num_unique_running_routing_keys",
        "routing_key_running_req_count",
        "routing_key_all_req_count",
    ),
    # No sliding windows, no state space layers.
    *("swa_token_usage", "swa_available_tokens", "swa_evictable_tokens", "swa_used_tokens"),
    *("mamba_usage", "mamba_available_tokens", "mamba_evictable_tokens", "mamba_used_tokens"),
    # No disaggregation of prefill and decode.
    *("num_prefill_bootstrap_queue_reqs", "num_prefill_inflight_queue_reqs", "num_decode_prealloc_queue_reqs"),
    *("num_decode_transfer_queue_reqs", "num_decode_host_receive_queue_reqs", "num_decode_deferred_kv_release_reqs"),
    *("pending_prealloc_token_usage", "prealloc_full_token_usage", "prealloc_swa_token_usage"),
    # DSPARK only.
    *("spec_cap_length", "spec_block_accept_length"),
    # The lab's tokenizer has no process of its own.
    "process_cpu_seconds_total",
}
METRICS_OWN = {"num_aborted_requests_total"}
"""In SGLang's source; the recordings hold no aborted request."""
