"""Checkpoints of a training stage: written whole beside the old one and renamed, so a killed run resumes from the last."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from torch import nn

from specctl.lab.train.optimiser import Optimiser

EVERY_S = 60.0


class Checkpoint:
    """One stage's checkpoint file and when it is due."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written_at = time.monotonic()

    def resume(self, model: nn.Module, optimiser: Optimiser) -> tuple[int, float]:
        """Load the last checkpoint, if any; return the next step and the seconds already spent."""
        if not self._path.exists():
            return 0, 0.0
        saved = torch.load(self._path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.restore(saved["optimiser"])
        return int(saved["step"]), float(saved["spent_s"])

    def due(self) -> bool:
        """Tell whether a minute has passed since the last write."""
        return time.monotonic() - self._written_at >= EVERY_S

    def write(self, model: nn.Module, optimiser: Optimiser, step: int, spent_s: float) -> None:
        """Write a checkpoint that resumes at this step."""
        partial = self._path.with_suffix(".partial")
        torch.save(
            {"model": model.state_dict(), "optimiser": optimiser.state(), "step": step, "spent_s": spent_s}, partial
        )
        partial.replace(self._path)
        self._written_at = time.monotonic()
