"""What a server is to be good at, as a worth per second that adds up over time.

`throughput`: output tokens a second of the whole server, T.
`latency` (the default): output tokens a second that one request gets, T/c, the reciprocal of a request's time per output token c/T.
Both are 0 where no request is there and 0 while the server is down, so that a schedule's worth is an integral over time.
At one concurrency both rank the modes alike; they differ in the hours that they weigh: latency those with few requests.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Metric(enum.Enum):
    """What is to be made large."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A metric and, if wished, a floor on the other one.

    `floor` of latency: tokens a second that a mode must reach at some concurrency (its capacity).
    `floor` of throughput: tokens a second that each request must get at the concurrency at hand.
    A mode below its floor is worth less in proportion, so that where none reaches it the one that comes nearest wins.
    """

    metric: Metric = Metric.LATENCY
    floor: float | None = None

    def __post_init__(self) -> None:
        if self.floor is not None and not self.floor > 0:
            raise ValueError(f"a floor is above 0 tokens a second, not {self.floor}")

    def worth(self, tokens_s: float, concurrency: float, *, capacity: float) -> float:
        """Return the worth per second of serving `tokens_s` to that many requests; `capacity`: the mode's most tokens a second."""
        if concurrency <= 0:
            return 0.0
        each = tokens_s / concurrency
        match self.metric:
            case Metric.LATENCY:
                return each if self.floor is None else each * min(1.0, capacity / self.floor)
            case Metric.THROUGHPUT:
                return tokens_s if self.floor is None else tokens_s * min(1.0, each / self.floor)
