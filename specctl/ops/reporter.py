"""How an op tells what it is doing while it does it; implemented by ui/board.py and, in tests, by a list."""

from __future__ import annotations

from typing import Protocol

from specctl.rollout.gate_types import GateState


class Reporter(Protocol):
    """Told of progress from several threads at once; must not block for long and never raise."""

    def step(self, host: str, name: str, text: str) -> None:
        """Say that a step of an act (drain, write, stop …) stands so and so; the next call replaces the line."""

    def gate(self, host: str, state: GateState) -> None:
        """Show how far the load is."""

    def final(self, host: str, name: str, text: str) -> None:
        """Say something that stays: proof, deployed, failed, because, log, restored."""
