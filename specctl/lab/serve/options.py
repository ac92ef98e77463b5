"""The command line of the lab's server, in SGLang's own spelling.

Only names that the lab acts on (or safely ignores) exist; an unknown one ends with exit code 2, as SGLang's parser does.
Prefixes of names are refused, which is stricter than SGLang. Called by main; it reads no model and starts nothing.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specctl.lab.serve import configfile, faults

PROGRAM = "sglang serve"
DEFAULT_PORT = 30000
DEFAULT_MAX_RUNNING = 8
DEFAULT_DECODE_LOG_INTERVAL = 40
DEFAULT_MEM_FRACTION = 0.88
"""SGLang derives it from the GPU; the lab has none and reports this constant."""
DEFAULT_TRACE_MB = 64
MEGABYTE = 1_000_000
_SUFFIXES = {"": 1, "k": 1000, "m": 1_000_000, "Ki": 1024, "Mi": 1024 * 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The parsed command line; names are SGLang's, None means that the flag was not given."""

    model_path: Path
    host: str
    port: int
    tp_size: int
    max_running_requests: int
    max_queued_requests: int | None
    context_length: int | None
    api_key: str | None
    admin_api_key: str | None
    enable_metrics: bool
    served_model_name: str
    speculative_algorithm: str | None
    speculative_draft_model_path: Path | None
    speculative_dflash_block_size: int | None
    speculative_num_draft_tokens: int | None
    speculative_ddtree_budget: int | None
    speculative_ddtree_topk_cap: int | None
    mem_fraction_static: float
    page_size: int
    log_level: str
    decode_log_interval: int
    random_seed: int
    skip_server_warmup: bool
    load_seconds: float
    verify_trace: Path | None
    verify_trace_bytes: int
    faults: faults.Faults
    launch_command: str


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Parse the command line, merging a `--config FILE` below it; exit 2 with a usage line when it is wrong."""
    parser = _parser()
    merged = configfile.merge(argv)
    found = parser.parse_args(merged)
    try:
        injected = faults.parse(
            [name for text in found.inject for name in text.split(",")], allowed=faults.allowed(environ)
        )
    except faults.FaultRefusedError as error:
        parser.error(str(error))
    algorithm = found.speculative_algorithm
    return Options(
        model_path=found.model_path,
        host=found.host,
        port=found.port,
        tp_size=found.tp_size,
        max_running_requests=found.max_running_requests,
        max_queued_requests=found.max_queued_requests,
        context_length=found.context_length,
        api_key=found.api_key,
        admin_api_key=found.admin_api_key,
        enable_metrics=found.enable_metrics,
        served_model_name=found.served_model_name or str(found.model_path),
        speculative_algorithm=algorithm.upper() if algorithm else None,
        speculative_draft_model_path=found.speculative_draft_model_path,
        speculative_dflash_block_size=found.speculative_dflash_block_size,
        speculative_num_draft_tokens=found.speculative_num_draft_tokens,
        speculative_ddtree_budget=found.speculative_ddtree_budget,
        speculative_ddtree_topk_cap=found.speculative_ddtree_topk_cap,
        mem_fraction_static=found.mem_fraction_static,
        page_size=found.page_size,
        log_level=found.log_level,
        decode_log_interval=found.decode_log_interval,
        random_seed=random.randrange(1 << 30) if found.random_seed is None else found.random_seed,
        skip_server_warmup=found.skip_server_warmup,
        load_seconds=found.load_seconds,
        verify_trace=found.verify_trace,
        verify_trace_bytes=found.verify_trace_mb * MEGABYTE,
        faults=injected,
        launch_command=" ".join(argv),
    )


def human_int(text: str) -> int:
    """Read a whole number with SGLang's suffixes: `32k` is 32000, `32Ki` is 32768; they are case sensitive."""
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", text)
    if match is None or match[2] not in _SUFFIXES:
        raise argparse.ArgumentTypeError(f"invalid human-readable int value: {text!r}")
    return int(match[1]) * _SUFFIXES[match[2]]


def _positive(text: str) -> int:
    """Read a whole number of at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _seconds(text: str) -> float:
    """Read a duration that is not negative."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text}")
    return number


def _parser() -> argparse.ArgumentParser:
    """Build the parser: SGLang's names, then the lab's own."""
    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False, description="The lab's server (specctl.lab).")
    add = parser.add_argument
    add("--model-path", "--model", type=Path, required=True)
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=DEFAULT_PORT)
    add("--tp-size", "--tensor-parallel-size", type=_positive, default=1)
    add("--max-running-requests", type=_positive, default=DEFAULT_MAX_RUNNING)
    add("--max-queued-requests", type=_positive)
    add("--context-length", type=human_int)
    add("--api-key")
    add("--admin-api-key")
    add("--enable-metrics", action="store_true")
    add("--served-model-name")
    add("--speculative-algorithm")
    add("--speculative-draft-model-path", "--speculative-draft-model", type=Path)
    add("--speculative-dflash-block-size", type=int)
    add("--speculative-num-draft-tokens", type=int)
    add("--speculative-ddtree-budget", type=int)
    add("--speculative-ddtree-topk-cap", type=int)
    add("--mem-fraction-static", type=float, default=DEFAULT_MEM_FRACTION)
    add("--page-size", type=_positive, default=1)
    add("--log-level", default="info", choices=("debug", "info", "warning", "error", "critical"))
    add("--decode-log-interval", type=_positive, default=DEFAULT_DECODE_LOG_INTERVAL)
    add("--random-seed", type=int)
    add("--skip-server-warmup", action="store_true")
    add("--config", help="YAML of options; the two-token form is merged, --config=FILE is ignored, as in SGLang 0.5.23")
    add("--load-seconds", type=_seconds, default=0.0, help="lab only: stretch the start-up phases to about this long")
    add("--verify-trace", type=Path, metavar="FILE", help="lab only: record every verify step (docs/verify-trace.md)")
    add("--verify-trace-mb", type=_positive, default=DEFAULT_TRACE_MB, help="lab only: end the record at this size")
    add("--inject", action="append", default=[], metavar="FAULT", help="lab only: a fault (docs/lab-server.md)")
    return parser
