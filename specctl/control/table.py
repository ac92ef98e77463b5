"""A table of modes: which one a server should be in at each number of requests, for an engine that follows it at every step.

Where the engine can follow one, nothing is gathered and nothing waited for: a change costs no more than the step that is under way.
"""

from __future__ import annotations

from dataclasses import dataclass

from specctl.control.mode import Mode


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by their least number of requests, rising; the first also holds below its own."""

    rows: tuple[tuple[int, Mode], ...]

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.rows]
        if not starts or starts[0] < 1 or starts != sorted(set(starts)):
            raise ValueError(f"the rows of a table begin at 1 or more and rise, not at {starts}")

    def __str__(self) -> str:
        return ", ".join(f"from {start} {mode}" for start, mode in self.rows)

    def at(self, requests: int) -> Mode:
        """Return the mode at that many requests."""
        fitting = [mode for start, mode in self.rows if start <= requests]
        return fitting[-1] if fitting else self.rows[0][1]
