"""What a mode is thought to serve at a number of requests: the throughput model's one question, and the kinds of answer.

Pure. The policy and the replay ask a `Rates`; tables, priors, measurements and their blend answer. Unknown is None, never 0.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from specctl.control.mode import Mode


class Source(enum.Enum):
    """Where an estimate comes from, the most trusted first."""

    MEASURED = "measured on this host"
    CALIBRATED = "this host's calibration file"
    PRIOR = "published figures (calibration.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Output tokens a second of a whole server, with the bounds between which the truth is thought to lie."""

    value: float
    low: float
    high: float
    source: Source

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high:
            raise ValueError(f"an estimate needs 0 <= low <= value <= high, not {self.low}, {self.value}, {self.high}")


class Rates(Protocol):
    """A throughput model."""

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes that it knows something of, in a fixed order."""
        ...

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return what the server serves in that mode with that many requests running or queued (> 0).

        None where nothing is known, or where the answer would be an extrapolation.
        """
        ...
