"""/model_info, /server_info and /v1/models: what the server says of itself.

Keys are told in clear in /server_info, as SGLang 0.5.23 does (recorded): a client must redact before it stores.
"""

from __future__ import annotations

from collections.abc import Mapping

from specctl.lab.serve import dialect
from specctl.lab.serve.loads import GIB
from specctl.lab.serve.metrics import CAPTURED_PHASE, GRAPH_PHASES
from specctl.lab.serve.reporter import SNAPSHOT_STEPS
from specctl.lab.serve.resolve import Launch
from specctl.lab.serve.service import Service

CHUNKED_PREFILL = -1
"""What SGLang prints where prefill is not chunked."""
MODEL_TYPE = "specctl_lab"
ARCHITECTURE = "LabForCausalLM"
DRAFT_ARCHITECTURE = "DFlashDraftModel"
_FIXED: Mapping[str, object] = {
    "tokenizer_mode": "auto",
    "tokenizer_backend": "huggingface",
    "tokenizer_worker_num": 1,
    "detokenizer_worker_num": 1,
    "skip_tokenizer_init": False,
    "load_format": "auto",
    "trust_remote_code": False,
    "is_embedding": False,
    "revision": None,
    "dtype": "auto",
    "quantization": None,
    "kv_cache_dtype": "auto",
    "max_total_tokens": None,
    "chunked_prefill_size": CHUNKED_PREFILL,
    "schedule_policy": "fcfs",
    "schedule_conservativeness": 1.0,
    "disable_radix_cache": True,
    "disable_overlap_schedule": True,
    "num_continuous_decode_steps": 1,
    "device": "cpu",
    "nnodes": 1,
    "node_rank": 0,
    "pp_size": 1,
    "dp_size": 1,
    "ep_size": 1,
    "pp_max_micro_batch_size": None,
    "load_balance_method": "round_robin",
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "weight_version": "default",
    "chat_template": None,
    "reasoning_parser": None,
    "tool_call_parser": None,
    "sampling_defaults": "model",
    "preferred_sampling_params": None,
    "log_requests": False,
    "watchdog_timeout": 300,
    "grammar_backend": "none",
    "disable_cuda_graph": False,
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "disaggregation_mode": "null",
}
"""What no option of the lab changes, in SGLang's words."""


def server_args(launch: Launch, speculation: dialect.Speculation) -> dict[str, object]:
    """Return the arguments as SGLang prints them: what was given, what follows from it, and what the lab fixes."""
    options = launch.options
    draft = options.speculative_draft_model_path
    return {
        "model_path": str(options.model_path),
        "tokenizer_path": str(options.model_path),
        "host": options.host,
        "port": options.port,
        "api_key": options.api_key,
        "admin_api_key": options.admin_api_key,
        "served_model_name": options.served_model_name,
        "context_length": options.context_length,
        "mem_fraction_static": options.mem_fraction_static,
        "max_running_requests": options.max_running_requests,
        "max_queued_requests": options.max_queued_requests,
        "max_prefill_tokens": launch.context_length,
        "page_size": options.page_size,
        "tp_size": options.tp_size,
        "random_seed": options.random_seed,
        "skip_server_warmup": options.skip_server_warmup,
        "log_level": options.log_level,
        "enable_metrics": options.enable_metrics,
        "decode_log_interval": options.decode_log_interval,
        "load_snapshot_publish_interval": SNAPSHOT_STEPS,
        "speculative_draft_model_path": None if draft is None else str(draft),
        **({} if options.verify_trace is None else {"verify_trace": str(options.verify_trace.absolute())}),
        **_FIXED,
        **speculation.server_args(),
    }


def model_info(service: Service) -> dict[str, object]:
    """Return the answer of /model_info."""
    options = service.launch.options
    return {
        "model_path": str(options.model_path),
        "served_model_name": options.served_model_name,
        "tokenizer_path": str(options.model_path),
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": "auto",
        "reasoning_parser": None,
        "tool_call_parser": None,
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": MODEL_TYPE,
        "architectures": [ARCHITECTURE],
    }


def models(service: Service) -> dict[str, object]:
    """Return the answer of /v1/models."""
    return {"object": "list", "data": [model_card(service)]}


def model_card(service: Service) -> dict[str, object]:
    """Return the one model as OpenAI's clients read it."""
    name = service.launch.options.served_model_name
    return {
        "id": name,
        "object": "model",
        "created": service.created,
        "owned_by": "sglang",
        "root": name,
        "parent": None,
        "max_model_len": service.launch.context_length,
    }


async def server_info(service: Service) -> dict[str, object]:
    """Return the answer of /server_info; it asks the scheduler, so it hangs with a hung one."""
    state = await service.ask(lambda: _internal_state(service))
    return {
        **server_args(service.launch, service.launch.speculation),
        "launch_command": service.launch.options.launch_command,
        "status": "ready",
        "max_total_num_tokens": service.footprint.capacity_tokens,
        "max_req_input_len": service.launch.max_input_tokens,
        "startup_time": {**_startup(service), "tokenizer_e2e": service.startup.tokenizer_e2e},
        "kv_events": None,
        "internal_states": [state],
        "version": dialect.VERSION,
        "frontend": "python",
    }


def _startup(service: Service) -> dict[str, object]:
    """Return the durations of the scheduler's start."""
    times = service.startup
    return {
        "load_weight": times.load_weight,
        "kv_cache_allocation": times.kv_cache_allocation,
        "scheduler_e2e": times.scheduler_e2e,
        "cuda_graph": {phase: times.cuda_graph if phase == CAPTURED_PHASE else 0.0 for phase in GRAPH_PHASES},
    }


def _internal_state(service: Service) -> dict[str, object]:
    """Return the scheduler's own view; live changes show here and not at the top level."""
    reporter, footprint = service.scheduler.reporter, service.footprint
    state: dict[str, object] = {
        **server_args(service.launch, service.scheduler.speculation),
        **service.accept_thresholds,
        "pp_max_micro_batch_size": service.pp_max_micro_batch_size or service.launch.options.max_running_requests,
        "startup_time": _startup(service),
        "world_size": 1,
        "effective_max_running_requests_per_dp": service.launch.options.max_running_requests,
        "last_gen_throughput": reporter.last_gen_throughput,
        "memory_usage": {
            "weight": round(footprint.weight_bytes / GIB, 3),
            "kvcache": round(footprint.kv_bytes / GIB, 3),
            "startup_available": round(footprint.available_bytes / GIB, 3),
            "token_capacity": footprint.capacity_tokens,
            "token_capacity_swa": None,
            "graph": dict.fromkeys(GRAPH_PHASES, 0.0),
        },
        "decode_cuda_graph_bs": [],
        "decode_cuda_graph_memory_gb": 0.0,
    }
    if reporter.lifetime_accept_length is not None:
        state["avg_spec_accept_length"] = reporter.lifetime_accept_length
    return state
