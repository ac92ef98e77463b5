"""The worker: SGLang's DFLASH worker, with a tree where it has a chain.

Prefill, the draft's cache and the models are inherited. All that a step uses of the engine's inner parts is here; `step` says in
which order. Nothing in a step waits for the device. Not yet run on a GPU.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import torch
from sglang.srt.configs.hybrid_arch import mambaish_config  # type: ignore[import-not-found]  # the engine's
from sglang.srt.model_executor.forward_batch_info import ForwardBatch  # type: ignore[import-not-found]  # the engine's
from sglang.srt.plugins.hook_registry import HookRegistry  # type: ignore[import-not-found]  # the engine's
from sglang.srt.runtime_context import (  # type: ignore[import-not-found]  # the engine's
    attention_backends,
    get_observability,
    get_parallel,
    get_serving,
    get_spec,
)
from sglang.srt.speculative.dflash_worker_v2 import DFlashWorkerV2  # type: ignore[import-not-found]  # the engine's
from sglang.srt.speculative.spec_tp_sync import SpecTpSyncSite  # type: ignore[import-not-found]  # the engine's
from sglang.srt.speculative.spec_utils import draft_tp_context  # type: ignore[import-not-found]  # the engine's
from sglang.version import __version__ as installed  # type: ignore[import-not-found]  # the engine's

from sglang_ddtree import draft_head, engine, knobs, live, metrics, refusals, settling, step, trace, widths

logger = logging.getLogger(__name__)


class DDTreeWorker(DFlashWorkerV2):  # type: ignore[misc]  # of an untyped engine
    """Drafts a block with the draft model, verifies a tree of it with the target."""

    def __init__(self, **named: object) -> None:
        refusals.check_hooks(HookRegistry._hooks, HookRegistry._patched)  # noqa: SLF001  # nothing public tells
        refusals.check_backends(attention_backends())
        block = int(get_spec().speculative_dflash_block_size)
        # What DFLASH calls the number of draft tokens is here the width of the verify pass; the draft has its block.
        with get_spec().override(speculative_num_draft_tokens=block):
            super().__init__(**named)
        config = self.model_runner.model_config
        refusals.check_models(self.model_runner, self.draft_model_runner, mambaish_config(config))
        refusals.check_defaults(config.get_default_sampling_params())
        self._head = draft_head.of_target(self.model_runner.model, get_parallel().tp_group)
        limits, start = knobs.at_start(os.environ, block)
        self.dial = live.Dial(limits, start)
        self.book = _book(block)
        self.widths = widths.Widths(self.model_runner, limits.width)
        self._keep_type()
        if get_parallel().tp_rank == 0:
            logger.info("Initialized DDTREE worker. %s", knobs.told(limits, start))

    def _keep_type(self) -> None:
        """Give the draft its input in its own type: the engine hands embeddings over in bfloat16 whatever the model is in."""
        kind, run = self.draft_model_runner.dtype, self.draft_model.forward
        if kind == torch.bfloat16:
            return

        def forward(*values: object, input_embeds: torch.Tensor | None = None, **named: object) -> object:
            embeds = None if input_embeds is None else input_embeds.to(kind)
            return run(*values, input_embeds=embeds, **named)

        self.draft_model.forward = forward

    def _maybe_build_draft_sampler(self) -> None:
        """Keep the draft's head out of its graph: the engine's would keep one token a depth."""

    def _validate_phase1_sampling_support(self, _batch: engine.Batch) -> None:
        """Say nothing of kernels that DFLASH verifies draws with: a tree's are walked, and exact without them."""

    def forward_batch_generation(
        self,
        batch: engine.Batch,
        on_publish: Callable[[torch.Tensor], None] | None = None,
        grammar_barrier: Callable[[], None] | None = None,
        pp_proxy_tensors: object = None,
    ) -> object:
        """Run a batch: a decode step with a tree, all else as DFLASH does."""
        if batch.forward_mode.is_extend() or batch.is_extend_in_batch or batch.forward_mode.is_idle():
            return super().forward_batch_generation(batch, on_publish, grammar_barrier, pp_proxy_tensors)
        return step.decode(self, batch, on_publish, grammar_barrier)

    def init_attention_backends(self) -> None:
        """Make the draft's attention; the target's is there by now, and refused where it would not read a mask."""
        super().init_attention_backends()
        refusals.check_attention(self.model_runner.attn_backend)

    def init_cuda_graphs(self) -> None:
        """Capture the engine's graphs, then those of other widths."""
        super().init_cuda_graphs()
        self.widths.capture(widths.wanted(self.dial.limits, self.dial.knobs), self._captured)

    def _captured(self, width: int) -> widths.Captured:
        """Capture verify passes of a width, as the engine does for its own adaptive widths."""
        from sglang.srt.model_executor.runner import DecodeCudaGraphRunner  # type: ignore[import-not-found]  # the engine's

        runner = self.model_runner
        workspace = runner.init_new_workspace
        with get_spec().override(speculative_num_draft_tokens=width):
            try:
                attention = runner._get_attention_backend(init_new_workspace=True)  # noqa: SLF001  # as the engine's own workers do
            finally:
                runner.init_new_workspace = workspace
            graphs = DecodeCudaGraphRunner(runner, attn_backend=attention, speculative_num_draft_tokens=width)
        return widths.Captured(attention=attention, graphs=graphs)

    def masked_block(self, roots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ids [R × block] that the draft fills, each request's last token and masks, and their embeddings."""
        ids = torch.full((len(roots), int(self.block_size)), int(self._mask_token_id), device=roots.device)
        ids[:, 0] = roots
        embeds = self.model_runner.model.get_input_embeddings()(ids) * self._noise_embed_scale
        return ids.flatten(), embeds.flatten(0, 1)

    def draft(self, forward: ForwardBatch, plan: engine.Plan) -> torch.Tensor:
        """Run the draft over its block; return its hidden states [R, block, hidden]."""
        plan.bind(forward, self.draft_model_runner.kv_index_translator)
        with torch.inference_mode(), draft_tp_context(self.draft_parallel_layout):
            hidden = self.draft_model_runner.forward(forward).logits_output.hidden_states
        block = int(self.block_size)
        return hidden[: forward.batch_size * block].view(forward.batch_size, block, -1)

    def alternatives(self, hidden: torch.Tensor, topk: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens and log-probabilities of each depth [R, block - 1, topk], the same on every rank."""
        with torch.inference_mode():
            return draft_head.alternatives(hidden[:, 1:], self._head, topk)

    @property
    def block_info(self) -> object:
        """What tells attention that the draft's pass is a block."""
        return self._draft_block_spec_info

    def same_on_all_ranks(self, picks: torch.Tensor, *, drawn: bool) -> torch.Tensor:
        """Let the first rank decide, as DFLASH does: two ranks' logits need not be equal to the last bit, nor their draws.

        SGLANG_SPEC_TP_SYNC may turn off the one or the other.
        """
        site = SpecTpSyncSite.DFLASH_ACCEPT_SAMPLE if drawn else SpecTpSyncSite.DFLASH_ACCEPT_GREEDY
        return self._tp_sync.sync(site, picks)

    def whole_logits(self, output: engine.Logits) -> torch.Tensor:
        """Return the logits of the whole vocabulary; under tensor parallelism the engine may have left the gather to us."""
        logits, processor = output.next_token_logits, self._target_logits_processor
        if processor is not None and processor.is_deferred_shard(logits):
            logits = processor.finish_deferred_gather(logits)
            output.next_token_logits = logits
        return logits

    def remember(self, hidden: torch.Tensor, plan: engine.Plan, positions: torch.Tensor, commits: torch.Tensor) -> None:
        """Let the draft's cache have what the target saw [R, P, hidden] at the first P places: the `commits` first count."""
        columns = positions.shape[1]
        places = self._draft_write_ids(plan).view(len(commits), -1)[:, :columns].contiguous()
        self._append_target_hidden_to_draft_kv_by_loc(
            target_hidden=hidden.flatten(0, 1),
            cache_loc=places.flatten(),
            cache_loc_2d=places,
            positions=positions.flatten(),
            commit_lens=commits,
        )

    def next_input(self, tokens: torch.Tensor, lengths: torch.Tensor) -> object:
        """Return what the next step begins with: each request's last token and its length."""
        return self._make_next_draft_input_decode(bonus_tokens=tokens, new_seq_lens=lengths)


def _book(block: int) -> settling.Book:
    if get_parallel().tp_rank != 0:
        return settling.Book(metrics.Meter(metrics.NEVER, metrics.unpublished), None, block)
    told = get_observability()
    series = metrics.Series(get_serving().served_model_name) if told.enable_metrics else None
    every = knobs.every(os.environ, told.decode_log_interval)
    meter = metrics.Meter(every, series.publish if series else metrics.unpublished)
    return settling.Book(meter, trace.asked_for(os.environ, installed), block)
