"""Stage one: train the target on the standard library's sources."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from specctl.lab.train.checkpoint import Checkpoint
from specctl.lab.train.optimiser import Optimiser
from specctl.lab.train.plan import Plan
from specctl.lab.train.target_model import Target

LOG_EVERY = 50
VALIDATION_BATCHES = 8


def run(plan: Plan, tokens: NDArray[np.int64], held_out: NDArray[np.int64], folder: Path) -> Target:
    """Train from the last checkpoint to the end of the schedule and return the model."""
    torch.manual_seed(plan.seed)
    model = Target(plan.target)
    optimiser = Optimiser(model, plan.target_schedule)
    checkpoint = Checkpoint(folder / "target.pt")
    first, spent = checkpoint.resume(model, optimiser)
    began = time.monotonic() - spent
    for step in range(first, plan.target_schedule.steps):
        batch = _batch(plan, tokens, np.random.default_rng((plan.seed, 1, step)), plan.target_schedule.batch)
        loss = _loss(model, batch)
        optimiser.step(loss, step)
        if step % LOG_EVERY == 0:
            print(f"target step={step} loss={loss.item():.3f} spent_s={time.monotonic() - began:.0f}", flush=True)
        if checkpoint.due():
            checkpoint.write(model, optimiser, step + 1, time.monotonic() - began)
    checkpoint.write(model, optimiser, plan.target_schedule.steps, time.monotonic() - began)
    print(
        f"target done spent_s={time.monotonic() - began:.0f} held_out_nats={validate(plan, model, held_out):.4f}",
        flush=True,
    )
    return model


def validate(plan: Plan, model: Target, held_out: NDArray[np.int64]) -> float:
    """Return the mean loss a token over a fixed draw of held-out windows."""
    draws = [
        _batch(plan, held_out, np.random.default_rng((plan.seed, 2, index)), 16) for index in range(VALIDATION_BATCHES)
    ]
    with torch.no_grad():
        return float(np.mean([_loss(model, draw).item() for draw in draws]))


def _batch(plan: Plan, tokens: NDArray[np.int64], rng: np.random.Generator, rows: int) -> torch.Tensor:
    starts = rng.integers(0, len(tokens) - plan.sequence - 1, size=rows)
    return torch.from_numpy(np.stack([tokens[start : start + plan.sequence + 1] for start in starts]))


def _loss(model: Target, batch: torch.Tensor) -> torch.Tensor:
    logits = model.lm_head(model(batch[:, :-1]))
    return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
