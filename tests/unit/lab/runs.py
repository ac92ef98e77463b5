"""Ways to run the lab's decoders to the end, and to tell where two greedy runs differ; used by the lab's tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import specctl.lab
from specctl.lab import masks
from specctl.lab.cache import KvCache
from specctl.lab.engine import Engine
from specctl.lab.forward import Pass
from specctl.lab.models import Models
from specctl.lab.types import FinishReason, Generation, Mode, Sampling, StepReport, Verify
from specctl.lab.weights import Floats

SHIPPED = Path(specctl.lab.__file__).parent / "models"
CONTEXT = 256
NONE = Mode(algo="none")


def linear(block_size: int = 8) -> Mode:
    """Return linear DFlash."""
    return Mode(algo="dflash", knobs={"block_size": block_size})


def tree(budget: int, topk: int, block_size: int = 8) -> Mode:
    """Return DDTree."""
    return Mode(algo="ddtree", knobs={"block_size": block_size, "tree_budget": budget, "topk_cap": topk})


@dataclass(slots=True)
class Outcome:
    """What became of each request of a run, by its id."""

    tokens: dict[str, list[int]] = field(default_factory=dict)
    finish: dict[str, FinishReason] = field(default_factory=dict)
    matched: dict[str, str | int | None] = field(default_factory=dict)
    verifies: dict[str, list[Verify]] = field(default_factory=dict)
    reports: list[StepReport] = field(default_factory=list)

    def take(self, report: StepReport) -> None:
        """Add one step's report."""
        self.reports.append(report)
        for emission in report.emissions:
            self.tokens.setdefault(emission.rid, []).extend(emission.tokens)
            if emission.finish is not None:
                self.finish[emission.rid] = emission.finish
                self.matched[emission.rid] = emission.matched
        for verify in report.verifies:
            self.verifies.setdefault(verify.rid, []).append(verify)

    def accepted(self) -> dict[str, list[int]]:
        """Return the accepted drafts of each request, step by step."""
        return {rid: [verify.accepted_drafts for verify in verifies] for rid, verifies in self.verifies.items()}


def request(rid: str, prompt: Sequence[int], sampling: Sampling | None = None) -> Generation:
    """Return a request, by default for 24 greedy tokens."""
    return Generation(rid=rid, prompt=tuple(prompt), sampling=sampling or Sampling(max_new_tokens=24))


def requests(prompts: Sequence[Sequence[int]], sampling: Sampling | None = None) -> list[Generation]:
    """Return a request for each prompt, all with one sampling, named by their place."""
    return [request(str(index), prompt, sampling) for index, prompt in enumerate(prompts)]


def run(models: Models, mode: Mode, generations: Sequence[Generation], *, max_running: int = 32) -> Outcome:
    """Run requests to their ends, all added at once."""
    engine = Engine(models, mode=mode, max_running=max_running, context_length=CONTEXT)
    outcome = Outcome()
    for generation in generations:
        engine.add(generation)
    while engine.running or engine.waiting:
        outcome.take(engine.step())
    return outcome


def difference(models: Models, generations: Sequence[Generation], wanted: Outcome, got: Outcome) -> str:
    """Say where two greedy runs first differ, and how near a tie the target was there."""
    for generation in generations:
        left, right = wanted.tokens[generation.rid], got.tokens[generation.rid]
        for index, (expected, actual) in enumerate(zip(left, right, strict=False)):
            if expected != actual:
                gap = _gap(models, [*generation.prompt, *left[:index]])
                where = f"request {generation.rid}, token {index}: {expected} became {actual}"
                return f"{where}; top-1 minus top-2 logit there: {gap:.2e}"
        if len(left) != len(right):
            return f"request {generation.rid}: {len(left)} tokens became {len(right)}"
    return "no difference"


def _gap(models: Models, tokens: Sequence[int]) -> float:
    """Return the target's margin after these tokens."""
    best = np.sort(logits_after(models, tokens)[-1])
    return float(best[-1] - best[-2])


def logits_after(models: Models, tokens: Sequence[int]) -> Floats:
    """Return the target's logits after each of these tokens, from one pass over a fresh cache."""
    config, count = models.target.config, len(tokens)
    cache = KvCache(layers=config.num_hidden_layers, rows=1, slots=count, head_dim=config.head_dim)
    length = np.zeros(1, dtype=np.int64)
    batch = Pass(
        first_row=0,
        lengths=length,
        tokens=np.array([tokens], dtype=np.int64),
        positions=masks.chain_positions(length, count),
        mask=masks.chain_mask(length, count),
    )
    hidden, _ = models.target.forward(batch, cache)
    return models.target.logits(hidden[0])
