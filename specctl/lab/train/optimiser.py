"""The optimisers of both models: Muon for the matrices inside blocks, AdamW for embeddings, heads and gains."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from specctl.lab.train.plan import Schedule

MOMENTUM = 0.95
BETAS = (0.9, 0.97)
CLIP = 1.0


class Optimiser:
    """Both optimisers as one, following a schedule."""

    def __init__(self, model: nn.Module, schedule: Schedule) -> None:
        inner = [p for name, p in model.named_parameters() if p.requires_grad and _is_inner(name, p)]
        outer = [p for name, p in model.named_parameters() if p.requires_grad and not _is_inner(name, p)]
        self._schedule = schedule
        self._parameters = inner + outer
        self._muon = torch.optim.Muon(inner, lr=schedule.muon_lr, momentum=MOMENTUM, weight_decay=0.0)
        self._adam = torch.optim.AdamW(outer, lr=schedule.adam_lr, betas=BETAS, weight_decay=0.0)

    def step(self, loss: torch.Tensor, step: int) -> None:
        """Take one optimisation step on this loss."""
        loss.backward()  # type: ignore[no-untyped-call,unused-ignore]  # torch does not annotate it
        nn.utils.clip_grad_norm_(self._parameters, CLIP)
        factor = self._schedule.factor(step)
        for optimiser, rate in ((self._muon, self._schedule.muon_lr), (self._adam, self._schedule.adam_lr)):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state(self) -> dict[str, object]:
        """Return what a checkpoint must hold."""
        return {"muon": self._muon.state_dict(), "adam": self._adam.state_dict()}

    def restore(self, state: Mapping[str, dict[str, object]]) -> None:
        """Take up a checkpoint's state."""
        self._muon.load_state_dict(state["muon"])
        self._adam.load_state_dict(state["adam"])


def _is_inner(name: str, parameter: nn.Parameter) -> bool:
    return parameter.dim() == 2 and "embed" not in name and "lm_head" not in name
