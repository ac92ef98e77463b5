"""One decode step: draft, tree, verify, walk, keep what was accepted. Nothing is read back from the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from sglang.kernels.ops.speculative.cache_locs import (  # type: ignore[import-not-found]  # the engine's
    assign_extend_cache_locs_func,
)
from sglang.srt.managers.utils import GenerationBatchResult  # type: ignore[import-not-found]  # the engine's
from sglang.srt.model_executor.forward_batch_info import (  # type: ignore[import-not-found]  # the engine's
    CaptureHiddenMode,
    ForwardBatch,
    ForwardMode,
    enable_num_token_non_padded,
)
from sglang.srt.speculative.dflash_info import DFlashVerifyInput  # type: ignore[import-not-found]  # the engine's
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm  # type: ignore[import-not-found]  # the engine's
from sglang.srt.speculative.spec_utils import GrammarTree  # type: ignore[import-not-found]  # the engine's

from sglang_ddtree import engine, keeping, masks, metrics, picking, settling, tree_torch

if TYPE_CHECKING:
    from sglang_ddtree.worker import DDTreeWorker


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Where a step's tokens go: each request's `lengths` [R] and the `places` [R, …] in the cache that come after them.

    `bounds` are lengths that the host knows: the true ones, where they are `exact`, else more, with what the step adds. `most`
    bounds the sum of the true ones.
    """

    lengths: torch.Tensor
    places: torch.Tensor
    bounds: torch.Tensor
    exact: bool
    most: int

    def host_lengths(self, added: int) -> torch.Tensor:
        """Return the lengths that attention plans with: those with `added` tokens, or the bounds that have them already."""
        return self.bounds + added if self.exact else self.bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a verify pass gave: a row of logits and hidden states a node, `width` nodes a request, written by `plan`."""

    logits: engine.Logits
    width: int
    plan: engine.Plan


def decode(
    worker: DDTreeWorker,
    batch: engine.Batch,
    on_publish: Callable[[torch.Tensor], None] | None = None,
    grammar_barrier: Callable[[], None] | None = None,
) -> object:
    """Run one decode step of a batch and return what the scheduler settles."""
    setting, block = worker.dial.knobs.at(len(batch.seq_lens)), worker.dial.limits.block_size
    nodes = setting.nodes(block)
    width = worker.widths.fitting(nodes)
    worker.speculative_num_draft_tokens = width  # what the engine's gauge of that name shows
    room = _room(worker, batch, max(width, block if nodes > 1 else 1))
    trees, build_s = _trees(worker, batch, room, nodes, setting.topk)
    trees = tree_torch.padded(trees, width)
    seen = tree_torch.ancestors(trees)
    grammar = GrammarTree.from_device(*tree_torch.links(trees), trees.tokens) if batch.has_grammar else None
    out, plan = _verify(worker, batch, room, trees, seen)
    positions = tree_torch.positions(trees, room.lengths)
    picks = picking.pick(worker, batch, out.logits_output, positions, grammar, grammar_barrier)
    walked = tree_torch.walk(trees, seen, picks, min(nodes, block) - 1)
    if batch.return_logprob:
        picking.log_probabilities(batch, out.logits_output, picks, walked.path)
    commits = (walked.accepted + 1).to(torch.int32)
    lengths = room.lengths + commits.to(room.lengths.dtype)
    if on_publish is not None:
        on_publish(lengths)
    _keep(worker, room, walked, Verified(logits=out.logits_output, width=width, plan=plan), commits)
    result = _result(worker, out, walked, commits, lengths)
    result.speculative_num_draft_tokens = width
    begun = metrics.Pass(
        requests=len(batch.seq_lens), budget=setting.budget, topk=setting.topk, nodes=nodes, build_s=build_s
    )
    shown = None
    if worker.book.traced is not None:
        shown = settling.Shown(lengths=room.lengths, trees=trees, picks=picks, walked=walked)
    setattr(result, settling.CARRIED, settling.Step(begun=begun, shown=shown))
    return result


def _trees(
    worker: DDTreeWorker, batch: engine.Batch, room: Room, nodes: int, topk: int
) -> tuple[tree_torch.Trees, float]:
    """Draft a tree of `nodes` a request; return them and the seconds that the host took, the draft's pass not counted."""
    roots = batch.spec_info.bonus_tokens.view(-1).long()
    if nodes == 1:
        nothing = torch.zeros((len(roots), 1, 1), dtype=torch.int64, device=roots.device)
        return tree_torch.grow(roots, nothing, nothing.float(), 0), 0.0
    hidden = _draft(worker, batch, room, roots)
    began = time.perf_counter()
    tokens, scores = worker.alternatives(hidden, topk)
    return tree_torch.grow(roots, tokens, scores, nodes - 1), time.perf_counter() - began


def _result(
    worker: DDTreeWorker, out: engine.Output, walked: tree_torch.Walk, commits: torch.Tensor, lengths: torch.Tensor
) -> GenerationBatchResult:
    last = walked.committed.gather(1, walked.accepted.unsqueeze(1)).flatten()
    return GenerationBatchResult(
        logits_output=out.logits_output,
        next_token_ids=walked.committed.flatten(),
        accept_lens=commits,
        can_run_cuda_graph=out.can_run_cuda_graph,
        next_draft_input=worker.next_input(last, lengths),
        speculative_output_stride=walked.committed.shape[1],
        new_seq_lens=lengths,
    )


def _room(worker: DDTreeWorker, batch: engine.Batch, width: int) -> Room:
    """Find the next `width` places of each request: the scheduler reserved them before the step."""
    context = worker.model_runner.model_config.context_len
    _cut(batch, context)
    lengths, requests = batch.seq_lens, len(batch.seq_lens)
    table = worker.model_runner.req_to_token_pool.req_to_token
    places = assign_extend_cache_locs_func(
        req_pool_indices=batch.req_pool_indices,
        req_to_token=table,
        start_offset=lengths,
        end_offset=lengths + width,
        batch_size=requests,
        draft_token_num=width,
        device=lengths.device,
    ).view(requests, width)
    known, reserved = batch.seq_lens_cpu, batch.spec_info.nxt_kv_lens_cpu
    sums = [int(known.sum())] if known is not None else []
    sums += [int(reserved.sum()) - width * requests] if reserved is not None else []
    return Room(
        lengths=lengths,
        places=places,
        bounds=reserved if known is None else known,
        exact=known is not None,
        most=min(max(sums), requests * context),
    )


def _cut(batch: engine.Batch, context: int) -> None:
    """Cut the lengths of a batch to the model's context, for this step: the scheduler has its own again after it.

    A request that ended with the step before is still in a batch that was begun before that was known. A path may have taken it
    past the end of the context, where no mask has room for it; what is decoded for it is for nobody.
    """
    lengths = batch.seq_lens
    if lengths.device.type != "cpu":
        # They may come from the stream of the step before.
        lengths.record_stream(torch.get_device_module(lengths.device).current_stream())
    batch.seq_lens = lengths.clamp(max=context)
    if batch.seq_lens_cpu is not None:
        batch.seq_lens_cpu = batch.seq_lens_cpu.clamp(max=context)


def _plan(worker: DDTreeWorker, batch: engine.Batch, room: Room, width: int) -> engine.Plan:
    plan: engine.Plan = worker.model_runner.kv_index_translator.plan(
        req_pool_indices=batch.req_pool_indices,
        seq_lens=room.lengths,
        seq_lens_cpu=room.bounds,
        write_virtual=room.places[:, :width].flatten(),
        read_extent=width,
    )
    return plan


def _draft(worker: DDTreeWorker, batch: engine.Batch, room: Room, roots: torch.Tensor) -> torch.Tensor:
    """Fill a block of masks after each request's last token; return the draft's hidden states [R, block, hidden]."""
    block, requests = worker.dial.limits.block_size, len(roots)
    ids, embeds = worker.masked_block(roots)
    bounds = room.host_lengths(block).to(torch.int32)
    offsets = torch.arange(block, device=roots.device)
    counted = requests * block
    forward = ForwardBatch(
        forward_mode=ForwardMode.TARGET_VERIFY,
        batch_size=requests,
        input_ids=ids,
        req_pool_indices=batch.req_pool_indices,
        seq_lens=room.lengths,
        out_cache_loc=room.places[:, :block].flatten(),
        seq_lens_sum=int(bounds.sum()),
        seq_lens_cpu=bounds,
        positions=(room.lengths.unsqueeze(1) + offsets).flatten(),
        input_embeds=embeds,
        spec_algorithm=SpeculativeAlgorithm.DFLASH,
        spec_info=worker.block_info,
        capture_hidden_mode=CaptureHiddenMode.NULL,
        num_token_non_padded=(
            torch.full((), counted, dtype=torch.int32, device=roots.device) if enable_num_token_non_padded() else None
        ),
        global_num_token_non_padded_cpu=counted,
        can_run_decode_cuda_graph=batch.can_run_decode_cuda_graph,
    )
    return worker.draft(forward, _plan(worker, batch, room, block))


def _verify(
    worker: DDTreeWorker, batch: engine.Batch, room: Room, trees: tree_torch.Trees, seen: torch.Tensor
) -> tuple[engine.Output, engine.Plan]:
    """Run the target over the trees; return its output and the plan of where it wrote."""
    width = trees.tokens.shape[1]
    plan = _plan(worker, batch, room, width)
    tree = DFlashVerifyInput(
        draft_token=trees.tokens.flatten(),
        positions=tree_torch.positions(trees, room.lengths).flatten(),
        draft_token_num=width,
        custom_mask=masks.full(seen, room.lengths, room.most),
        capture_hidden_mode=CaptureHiddenMode.FULL,
        kv_loc_plan=plan,
    )
    batch.out_cache_loc = room.places[:, :width].flatten()
    before = batch.seq_lens_cpu, batch.seq_lens_sum
    bounds = room.host_lengths(width)
    batch.seq_lens_cpu, batch.seq_lens_sum = bounds, int(bounds.sum())
    with worker.widths.active(width):
        forward, _ = tree.prepare_for_verify(batch, worker.target_worker)
        batch.seq_lens_cpu, batch.seq_lens_sum = before
        out = worker.target_worker.forward_batch_generation(
            batch=None, forward_batch=forward, is_verify=True, skip_attn_backend_init=True
        )
    return out, plan


def _keep(worker: DDTreeWorker, room: Room, walked: tree_torch.Walk, seen: Verified, commits: torch.Tensor) -> None:
    """Bring the accepted path to the front of its places, and let the draft see what the target saw along it."""
    keeping.move(worker.model_runner.token_to_kv_pool, room.places, keeping.sources(walked.path, walked.accepted))
    if seen.logits.hidden_states is None:
        raise RuntimeError("DDTREE: the target's pass gave no hidden states")
    hidden = keeping.along(seen.logits.hidden_states, walked.path, seen.width)
    places = torch.arange(walked.path.shape[1], device=walked.path.device)
    worker.remember(hidden, seen.plan, room.lengths.unsqueeze(1) + places, commits)
    seen.logits.hidden_states = None  # else the overlap scheduler copies them to the host, for nobody
