"""The start, phase by phase, with SGLang's log lines in SGLang's order: init, weights, draft, KV pool, graph, ready to serve.

Weights are read from disk slice by slice, so that memory and I/O grow while the bar moves; --load-seconds stretches each
phase by its share. A failure here is a failure of the scheduler; the caller ends the process.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from specctl.lab.serve import bending, memory, strikes
from specctl.lab.serve.identity import ARCHITECTURE, CHUNKED_PREFILL, DRAFT_ARCHITECTURE, server_args
from specctl.lab.serve.initlines import algorithm_lines
from specctl.lab.serve.loads import GIB
from specctl.lab.serve.log import Progress, logger
from specctl.lab.serve.readings import Footprint, StartupTimes
from specctl.lab.serve.resolve import Launch
from specctl.lab.types import Generation, Sampling

if TYPE_CHECKING:
    from specctl.lab.engine import Engine
    from specctl.lab.models import Models

SHARES = {"init": 0.05, "weights": 0.5, "draft": 0.15, "kv": 0.05, "graph": 0.15, "warmup": 0.1}
"""How --load-seconds is shared out over the phases; they sum to one."""
SLICES = 16
"""Parts in which a stretched load reads a weights file."""
QUICK_SLICES = 2
WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A started engine with what its start took."""

    models: Models
    engine: Engine
    footprint: Footprint
    times: StartupTimes


@dataclass(slots=True)
class Start:
    """Runs the phases once, in order; `began` is the process' start on the monotonic clock."""

    launch: Launch
    began: float
    _times: StartupTimes = field(
        default=StartupTimes(
            load_weight=0.0, kv_cache_allocation=0.0, scheduler_e2e=0.0, cuda_graph=0.0, tokenizer_e2e=0.0
        )
    )

    def run(self) -> Loaded:
        """Load and return the engine."""
        began = time.monotonic()
        self._init()
        models = self._weights()
        engine, kv_bytes = self._kv(models)
        self._graph(engine)
        free = memory.available_bytes()
        logger.info(
            "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d, context_len=%d, "
            "available_cpu_mem=%.2f GB",
            *(
                engine.capacity_tokens,
                CHUNKED_PREFILL,
                self.launch.context_length,
                self.launch.options.max_running_requests,
            ),
            *(self.launch.context_length, free / GIB),
        )
        now = time.monotonic()
        self._times = dataclasses.replace(self._times, scheduler_e2e=now - began, tokenizer_e2e=now - self.began)
        self._say_times()
        footprint = Footprint(
            weight_bytes=models.weight_bytes,
            kv_bytes=kv_bytes,
            available_bytes=free,
            capacity_tokens=engine.capacity_tokens,
        )
        return Loaded(models=models, engine=engine, footprint=footprint, times=self._times)

    def _init(self) -> None:
        """Print the arguments and pretend no ranks: the lab is one process."""
        logger.info("server_args=%s", server_args(self.launch, self.launch.speculation))
        began = time.monotonic()
        logger.info("Init parallel begin.")
        self._strike_and_stretch("init")
        logger.info("Init parallel ends. elapsed=%.2f s", time.monotonic() - began)
        logger.info("Memory baseline taken. mem usage=0.00 GB")

    def _weights(self) -> Models:
        """Read both models' files, then build the models from them."""
        from specctl.lab.engine import load_models

        began = time.monotonic()
        options = self.launch.options
        draft = options.speculative_draft_model_path
        kept = self._read("weights", options.model_path, ARCHITECTURE)
        if draft is not None:
            logger.info("Memory baseline taken. mem usage=0.00 GB")
            kept += self._read("draft", draft, DRAFT_ARCHITECTURE)
        models = load_models(options.model_path, draft)
        kept.clear()
        self._times = dataclasses.replace(self._times, load_weight=time.monotonic() - began)
        for line in algorithm_lines(self.launch, self.launch.speculation):
            logger.info("%s", line)
        return models

    def _read(self, phase: str, folder: Path, architecture: str) -> list[bytes]:
        """Read a weights file in slices between the two log lines and return the slices."""
        import safetensors

        began, free = time.monotonic(), memory.available_bytes()
        logger.info("Load weight begin. avail mem=%.2f GB", free / GIB)
        path = folder / WEIGHTS_FILE
        if not path.is_file():
            raise RuntimeError(f"Cannot find any model weights with `{folder}`")
        slices = SLICES if self.launch.options.load_seconds else QUICK_SLICES
        size = math.ceil(path.stat().st_size / slices)
        kept: list[bytes] = []
        with path.open("rb") as file, Progress("Multi-thread loading shards", slices) as progress:
            for index in range(slices):
                if index == slices // 2:
                    strikes.strike(self.launch.options.faults, phase)
                kept.append(file.read(size))
                self._stretch(phase, parts=slices)
                progress.advance()
        with safetensors.safe_open(path, framework="numpy"):
            pass  # a file cut short fails here, before the line that says that the weights have loaded
        logger.info(
            "Load weight end. elapsed=%.2f s, type=%s, avail mem=%.2f GB, mem usage=%.2f GB.",
            *(time.monotonic() - began, architecture, memory.available_bytes() / GIB, path.stat().st_size / GIB),
        )
        return kept

    def _kv(self, models: Models) -> tuple[Engine, int]:
        """Build the engine with its KV pools and return their size."""
        from specctl.lab.engine import Engine

        began = time.monotonic()
        self._strike_and_stretch("kv")
        options = self.launch.options
        engine = Engine(
            models,
            mode=self.launch.decodes(self.launch.speculation),
            max_running=options.max_running_requests,
            context_length=self.launch.context_length,
            seed=options.random_seed,
            seam=bending.seam(options.faults),
            traces=options.verify_trace is not None,
        )
        total = 0
        for config in (self.launch.target, self.launch.draft):
            if config is None:
                continue
            half = memory.kv_bytes(config, engine.capacity_tokens)
            total += 2 * half
            logger.info(
                "KV Cache is allocated. dtype: torch.float32, #tokens: %d, K size: %.2f GB, V size: %.2f GB",
                *(engine.capacity_tokens, half / GIB, half / GIB),
            )
            logger.info("Memory pool end. avail mem=%.2f GB", memory.available_bytes() / GIB)
        self._times = dataclasses.replace(self._times, kv_cache_allocation=time.monotonic() - began)
        return engine, total

    def _graph(self, engine: Engine) -> None:
        """Run the engine once at its smallest and its largest batch; the lab's stand-in for capturing graphs."""
        began, free = time.monotonic(), memory.available_bytes()
        sizes = sorted({self.launch.options.max_running_requests, 1}, reverse=True)
        logger.info("Capture target verify CUDA graph begin. backend=lab, bs=%s, avail mem=%.2f GB", sizes, free / GIB)
        with Progress(f"Capturing batches (bs={sizes[0]} avail_mem={free / GIB:.2f} GB)", len(sizes)) as progress:
            for size in sizes:
                self._strike_and_stretch("graph", parts=len(sizes))
                _rehearse(engine, size)
                progress.advance()
        spent = time.monotonic() - began
        logger.info(
            "Capture target verify CUDA graph end. elapsed=%.2f s, mem usage=0.00 GB, avail mem=%.2f GB.",
            spent,
            memory.available_bytes() / GIB,
        )
        self._times = dataclasses.replace(self._times, cuda_graph=spent)

    def _say_times(self) -> None:
        """Print how long the start took."""
        times = self._times
        logger.info(
            "Engine startup timings (s): load_weight=%.2f, kv_cache_allocation=%.2f, scheduler_e2e=%.2f, "
            "cuda_graph={prefill=0.00, decode=0.00, target_verify=%.2f, draft_prefill=0.00, draft_decode=0.00, draft_extend=0.00}, "
            "tokenizer_e2e=%.2f",
            *(times.load_weight, times.kv_cache_allocation, times.scheduler_e2e, times.cuda_graph, times.tokenizer_e2e),
        )

    def _strike_and_stretch(self, phase: str, parts: int = 1) -> None:
        """Let the phase's faults strike, then wait for its share."""
        self._stretch(phase, parts=2 * parts)
        strikes.strike(self.launch.options.faults, phase)
        self._stretch(phase, parts=2 * parts)

    def _stretch(self, phase: str, parts: int) -> None:
        """Wait for one part of a phase's share."""
        time.sleep(self.launch.options.load_seconds * SHARES[phase] / parts)


def _rehearse(engine: Engine, size: int) -> None:
    """Decode two tokens for a batch of this size, so that every buffer exists before the first request."""
    for index in range(size):
        engine.add(
            Generation(rid=f"capture-{size}-{index}", prompt=(0,), sampling=Sampling(max_new_tokens=2, ignore_eos=True))
        )
    while engine.running or engine.waiting:
        engine.step()
