"""The values that pass between the lab's decoders and its server.

The decoders (engine.py and below) know no HTTP, clock or log; the server (specctl.lab.serve) knows no matrices.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How a batch is decoded: an algo's name (none, dflash, ddtree) and its knobs.

    Knobs: `block_size` (draft tokens a step, anchor included), `tree_budget` (nodes besides the root), `topk_cap`.
    """

    algo: str
    knobs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How one request picks its tokens; temperature 0 is greedy."""

    max_new_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_new_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One request as the decoder sees it."""

    rid: str
    prompt: tuple[int, ...]
    sampling: Sampling


class FinishReason(enum.Enum):
    """Why a request ended, in SGLang's words."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """The tokens that one step committed for one request; `matched` is the stop string or token id that ended it.

    `before`: how many tokens the request had then, its prompt included; None where nobody counted.
    """

    rid: str
    tokens: tuple[int, ...]
    finish: FinishReason | None = None
    matched: str | int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """One verification of one request, node by node, for a trace (docs/verify-trace.md); `parents` is None for a chain."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    target: tuple[int, ...]
    path: tuple[int, ...]
    parents: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """What one verify step did for one request (conventions: design.md §7).

    `nodes` includes the root; `accepted_depth` equals `accepted_drafts` on any path; `committed` is accepted drafts + 1 bonus
    unless the request finished inside the block. `walk` is told by an engine that traces.
    """

    rid: str
    nodes: int
    accepted_drafts: int
    accepted_depth: int
    committed: int
    walk: Walk | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One iteration of the batch: what was emitted and, for a decode step with speculation, how verification went.

    `prefilled_tokens` counts prompt tokens computed in this step (prefill emits each new request's first token);
    `verifies` is empty for prefill and for algo none; `forward_tokens` counts packed tokens through the target.
    """

    emissions: tuple[Emission, ...]
    verifies: tuple[Verify, ...] = ()
    prefilled_requests: int = 0
    prefilled_tokens: int = 0
    forward_tokens: int = 0
