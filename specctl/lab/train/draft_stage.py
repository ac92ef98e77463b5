"""Stage three: train the drafter on the target's own continuations, from random anchors in their generated part."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from specctl.lab.train.checkpoint import Checkpoint
from specctl.lab.train.draft_model import Draft
from specctl.lab.train.generate_stage import FEATURES_FILE, SEQUENCES_FILE
from specctl.lab.train.optimiser import Optimiser
from specctl.lab.train.plan import Plan
from specctl.lab.train.target_model import Target

LOG_EVERY = 100
VALIDATE_EVERY = 500
# A wrong token ends the accepted run, so early depths weigh more: exp(-(k - 1) / WEIGHT_DEPTH).
WEIGHT_DEPTH = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One batch: whole sequences with features, anchors' positions and the tokens of each block, anchor included."""

    features: Tensor
    anchors: Tensor
    blocks: Tensor


def run(plan: Plan, target: Target, folder: Path) -> Draft:
    """Train from the last checkpoint to the end of the schedule and return the drafter."""
    stored = np.load(folder / SEQUENCES_FILE)
    tokens, prompts = stored["tokens"], stored["prompt_lengths"]
    features = np.load(folder / FEATURES_FILE, mmap_mode="r")
    torch.manual_seed(plan.seed + 1)
    model = Draft(plan.draft)
    model.norm.load_state_dict(target.norm.state_dict())
    target.requires_grad_(requires_grad=False)
    optimiser = Optimiser(model, plan.draft_schedule)
    checkpoint = Checkpoint(folder / "draft.pt")
    first, spent = checkpoint.resume(model, optimiser)
    began = time.monotonic() - spent
    trained = len(tokens) - plan.validation_sequences
    for step in range(first, plan.draft_schedule.steps):
        rng = np.random.default_rng((plan.seed, 4, step))
        rows = rng.integers(0, trained, size=plan.draft_schedule.batch)
        loss, length = _loss(model, target, _draw(plan, tokens, prompts, features, rows, rng))
        optimiser.step(loss, step)
        if step % LOG_EVERY == 0:
            spent = time.monotonic() - began
            print(
                f"draft step={step} loss={loss.item():.3f} accept_length={length:.2f} spent_s={spent:.0f}", flush=True
            )
        if step % VALIDATE_EVERY == 0 or step + 1 == plan.draft_schedule.steps:
            rows = np.arange(trained, len(tokens))
            draw = _draw(plan, tokens, prompts, features, rows, np.random.default_rng((plan.seed, 5)))
            print(f"draft step={step} unseen_accept_length={validate(model, target, draw):.3f}", flush=True)
        if checkpoint.due():
            checkpoint.write(model, optimiser, step + 1, time.monotonic() - began)
    checkpoint.write(model, optimiser, plan.draft_schedule.steps, time.monotonic() - began)
    return model


def validate(model: Draft, target: Target, draw: Draw) -> float:
    """Return one plus the accepted drafts, averaged over anchors of unseen sequences."""
    with torch.no_grad():
        return _loss(model, target, draw)[1]


def _loss(model: Draft, target: Target, draw: Draw) -> tuple[Tensor, float]:
    """Return the weighted loss and the mean accepted length."""
    hidden = model(draw.features, target.embed_tokens(draw.blocks[:, :, 0]), draw.anchors)
    logits = target.lm_head(hidden[:, :, 1:])
    wanted = draw.blocks[:, :, 1:]
    weights = torch.exp(-torch.arange(wanted.shape[2]) / WEIGHT_DEPTH)
    losses = functional.cross_entropy(logits.flatten(0, 2), wanted.flatten(), reduction="none").view(wanted.shape)
    agreed = (logits.detach().argmax(-1) == wanted).long().cumprod(dim=2).sum(dim=2)
    return (losses * weights).mean() / weights.mean(), 1.0 + agreed.float().mean().item()


def _draw(
    plan: Plan,
    tokens: NDArray[np.int64],
    prompts: NDArray[np.int64],
    features: NDArray[np.float16],
    rows: NDArray[np.int64],
    rng: np.random.Generator,
) -> Draw:
    """Draw anchors in the generated part of these sequences, one block's room before the end."""
    size = plan.draft.block_size
    anchors = rng.integers(prompts[rows][:, None], tokens.shape[1] - size + 1, size=(len(rows), plan.anchors))
    blocks = tokens[rows[:, None, None], anchors[:, :, None] + np.arange(size)]
    return Draw(
        features=torch.from_numpy(np.asarray(features[rows], dtype=np.float32)),
        anchors=torch.from_numpy(anchors),
        blocks=torch.from_numpy(blocks),
    )
