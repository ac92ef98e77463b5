"""The engine's objects as far as the plugin touches them: types alone, for the reader and the type checker.

SGLang promises none of these; `version` says for which release they were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field
from typing import ClassVar, Protocol

import torch


class Mode(Protocol):
    """What kind of pass a batch is for."""

    def is_extend(self) -> bool:
        """Whether prompts are read."""

    def is_idle(self) -> bool:
        """Whether there is nothing to do."""


class SamplingInfo(Protocol):
    """How the tokens of a batch are chosen: a dataclass whose tensors have a row a request."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    is_all_greedy: bool
    logit_bias: torch.Tensor | None


class Carried(Protocol):
    """What one step of a batch hands to the next: last tokens, and lengths up to which the cache is reserved."""

    bonus_tokens: torch.Tensor
    nxt_kv_lens_cpu: torch.Tensor | None


class Reason(Protocol):
    """Why a request ended."""

    def to_json(self) -> dict[str, str]:
        """Return it with its `type`."""


class Request(Protocol):
    """A request in a batch."""

    rid: str
    is_retracted: bool
    origin_input_ids: Sequence[int]
    output_ids: Sequence[int]
    output_ids_through_stop: Sequence[int]
    finished_reason: Reason | None

    def finished(self) -> bool:
        """Whether its last token was settled."""


class Batch(Protocol):
    """A batch of requests; `seq_lens` count the tokens in the cache, so that the last token is not yet among them."""

    forward_mode: Mode
    is_extend_in_batch: bool
    reqs: list[Request]
    seq_lens: torch.Tensor
    seq_lens_cpu: torch.Tensor | None
    seq_lens_sum: int | None
    req_pool_indices: torch.Tensor
    out_cache_loc: torch.Tensor
    spec_info: Carried
    sampling_info: SamplingInfo | None
    has_grammar: bool
    return_logprob: bool
    can_run_decode_cuda_graph: bool


class Logits(Protocol):
    """What the target's pass gives: a row a node."""

    next_token_logits: torch.Tensor
    hidden_states: torch.Tensor | None


class Output(Protocol):
    """A pass of the target."""

    logits_output: Logits
    can_run_cuda_graph: bool


class Plan(Protocol):
    """Where a step's keys and values go."""

    def bind(self, forward: object, translator: object) -> None:
        """Have a pass write there."""


class Result(Protocol):
    """A settled step: accepted drafts of each request."""

    num_correct_drafts_per_req_cpu: list[int]


class Processor(Protocol):
    """The scheduler's bookkeeping of results."""

    draft_worker: object
