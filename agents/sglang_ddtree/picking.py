"""What the target puts after each node: its best token, or a draw as the engine itself would draw it there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from sglang.srt.layers.logits_processor import LogitsProcessorOutput  # type: ignore[import-not-found]  # the engine's
from sglang.srt.layers.logprob_processor import compute_spec_logprobs  # type: ignore[import-not-found]  # the engine's
from sglang.srt.speculative.spec_utils import build_grammar_vocab_mask  # type: ignore[import-not-found]  # the engine's

from sglang_ddtree import engine

if TYPE_CHECKING:
    from sglang_ddtree.worker import DDTreeWorker


def pick(
    worker: DDTreeWorker,
    batch: engine.Batch,
    output: engine.Logits,
    positions: torch.Tensor,
    grammar: object,
    barrier: Callable[[], None] | None,
) -> torch.Tensor:
    """Return the target's token after each node [R, N], the same on every rank.

    A draw at a node does not depend on what was drafted below it: walking the draws gives tokens as if drawn one by one.
    """
    requests, nodes = positions.shape
    logits = worker.whole_logits(output)[: requests * nodes]
    info = batch.sampling_info
    if info is not None and info.logit_bias is not None:
        logits.view(requests, nodes, -1).add_(info.logit_bias.to(logits.dtype).unsqueeze(1))
    if grammar is not None:
        mask = build_grammar_vocab_mask(
            reqs=batch.reqs,
            tree=grammar,
            sampling_info=info,
            device=logits.device,
            barrier=barrier,
        )
        if mask is not None:
            mask.apply(logits)
    greedy = info is None or info.is_all_greedy
    picks = logits.argmax(dim=-1) if greedy else _drawn(worker, batch, logits, positions)
    return worker.same_on_all_ranks(picks.long().view(requests, nodes), drawn=not greedy)


def _drawn(worker: DDTreeWorker, batch: engine.Batch, logits: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Draw by the engine's own sampler, each node as a request of its own with the parameters of its request."""
    info, nodes = batch.sampling_info, positions.shape[1]
    assert info is not None
    names = ("temperatures", "top_ps", "top_ks", "min_ps", "sampling_seed")
    each = {name: getattr(info, name) for name in names}
    repeated = {name: None if value is None else value.repeat_interleave(nodes, dim=0) for name, value in each.items()}
    spread = replace(info, grammars=None, logit_bias=None, penalizer_orchestrator=None, **repeated)
    # The sampler works in place; log-probabilities are taken of what was there before.
    own = logits.clone() if batch.return_logprob else logits
    return worker.model_runner.sampler(
        LogitsProcessorOutput(next_token_logits=own),
        spread,
        return_logprob=False,
        top_logprobs_nums=[],
        token_ids_logprobs=[],
        positions=positions.flatten(),
    )


def log_probabilities(batch: engine.Batch, output: engine.Logits, picks: torch.Tensor, path: torch.Tensor) -> None:
    """Have the engine compute the log-probabilities of the tokens along each path, into its output."""
    requests, nodes = picks.shape
    rows = torch.arange(requests, device=path.device).unsqueeze(1) * nodes + path
    compute_spec_logprobs(batch, output, picks.flatten(), accept_index=rows)
