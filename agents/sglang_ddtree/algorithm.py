"""The algorithm DDTREE as SGLang knows it: a name, what it answers about itself, and what it does to the server's arguments.

To the engine it is a DFLASH whose verify pass is wider than its draft's block.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm  # type: ignore[import-not-found]  # the engine's own
from sglang.srt.speculative.spec_registry import CustomSpecAlgo  # type: ignore[import-not-found]  # the engine's own

from sglang_ddtree import knobs, refusals, trace

NAME = "DDTREE"


class DDTree(CustomSpecAlgo):  # type: ignore[misc]  # of an untyped engine
    """What the engine asks of an algorithm; all that is not here is as CustomSpecAlgo has it."""

    def is_dflash(self) -> bool:
        """Whether pools, capture of hidden states and preparation are DFLASH's: they are."""
        return True

    def is_dflash_family(self) -> bool:
        """The same question, of the family."""
        return True

    def supports_target_verify_for_draft(self) -> bool:
        """Whether the draft runs as a verify pass: it does, over a block of masks."""
        return True

    def supports_prefill_shared_read_done(self) -> bool:
        """Whether nothing reads the shared buffers after the target's prefill: nothing does."""
        return True

    def supports_grammar_overlap(self) -> bool:
        """Whether the worker advances grammars in its verify step: it does."""
        return True

    def carries_draft_hidden_states(self) -> bool:
        """Whether a prefill server sends hidden states along: there is none."""
        return False

    def need_topk(self) -> bool:
        """Whether the scheduler relays a draft's top-k between steps: the worker keeps nothing."""
        return False

    def create_future_map(self, device: torch.device, pool: object, *rest: object, **named: object) -> object:
        """Return what carries lengths and tokens from step to step under the overlap scheduler."""
        from sglang.srt.managers.overlap_utils import FutureMap  # type: ignore[import-not-found]  # the engine's own

        return FutureMap(device, self, pool, *rest, **named)

    def handle_server_args(self, server_args: object) -> None:
        """Let DFLASH's rules hold, then say how wide a verify pass may be; refuse what a tree cannot do.

        Wrong words of the environment are refused here too, all of them: no model is loaded yet.
        """
        refusals.check_arguments(server_args)
        knobs.every(os.environ, int(server_args.decode_log_interval))  # type: ignore[attr-defined]  # the engine's record
        trace.limit(os.environ)
        SpeculativeAlgorithm.DFLASH.handle_server_args(server_args)
        block = int(server_args.speculative_num_draft_tokens)  # type: ignore[attr-defined]  # the engine's record
        limits, _ = knobs.at_start(os.environ, block)
        server_args.speculative_dflash_block_size = block  # type: ignore[attr-defined]  # the engine's record
        server_args.speculative_num_draft_tokens = limits.width  # type: ignore[attr-defined]  # the engine's record

    def get_num_tokens_per_req_for_target_verify(self, num_draft_tokens: int, is_draft_worker: bool) -> int:  # noqa: FBT001  # the engine's signature
        """Return how many tokens of a request a pass has: a block for the draft, a tree for the target."""
        if not is_draft_worker:
            return num_draft_tokens
        from sglang.srt.runtime_context import get_spec  # type: ignore[import-not-found]  # the engine's own

        return int(get_spec().speculative_dflash_block_size)


def register() -> None:
    """Make DDTREE known to the engine."""

    def worker(_server_args: object) -> type:
        from sglang_ddtree.worker import DDTreeWorker

        return DDTreeWorker

    decorate: Callable[[object], object] = SpeculativeAlgorithm.register(NAME, supports_overlap=True, spec_class=DDTree)
    decorate(worker)
