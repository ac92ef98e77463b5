"""What happened over a run of decode steps: the numbers behind a `Decode batch` line, a `DDTREE metrics:` line and the spec gauges.

The conventions are those of docs/architecture.md: nodes include the root, the accept length includes the bonus token.
"""

from __future__ import annotations

from dataclasses import dataclass

from specctl.lab.types import StepReport


@dataclass(slots=True, kw_only=True)
class Window:
    """Sums over decode steps; a ratio over nothing is None."""

    steps: int = 0
    tokens: int = 0
    verifies: int = 0
    nodes: int = 0
    accepted_drafts: int = 0
    accepted_depth: int = 0
    committed: int = 0

    def add(self, report: StepReport) -> None:
        """Count one decode step."""
        self.steps += 1
        self.tokens += sum(len(emission.tokens) for emission in report.emissions)
        for verify in report.verifies:
            self.verifies += 1
            self.nodes += verify.nodes
            self.accepted_drafts += verify.accepted_drafts
            self.accepted_depth += verify.accepted_depth
            self.committed += verify.committed

    @property
    def accept_length(self) -> float | None:
        """Return accepted drafts plus the bonus token, per verify."""
        return None if self.verifies == 0 else 1 + self.accepted_drafts / self.verifies

    @property
    def accept_rate(self) -> float | None:
        """Return accepted drafts over proposed ones (per node for a tree)."""
        proposed = self.nodes - self.verifies
        return None if proposed <= 0 else self.accepted_drafts / proposed

    def mean(self, total: int) -> float:
        """Return one of the sums per verify; 0 where nothing was verified."""
        return total / self.verifies if self.verifies else 0.0
