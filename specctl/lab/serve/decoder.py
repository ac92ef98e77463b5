"""What the server needs of the decoding core; specctl.lab.engine.Engine is the real one, tests script another."""

from __future__ import annotations

from typing import Protocol

from specctl.lab.types import Generation, Mode, StepReport


class Decoder(Protocol):
    """A batch that decodes one step at a time; not thread-safe, so that only the scheduler's thread touches it.

    `step` runs one prefill or one decode iteration; `configure` changes the mode between two steps and raises ValueError when
    the mode is refused; `abort` answers whether the request was known, and the next step's report does not mention it.
    """

    def add(self, generation: Generation) -> None:
        """Queue a request."""

    def step(self) -> StepReport:
        """Run one iteration and report it."""

    def configure(self, mode: Mode) -> None:
        """Change how the batch is decoded."""

    def abort(self, rid: str) -> bool:
        """Forget a request."""

    @property
    def running(self) -> int:
        """Count the requests in the batch."""

    @property
    def waiting(self) -> int:
        """Count the queued requests."""

    @property
    def used_tokens(self) -> int:
        """Count the tokens held in the KV pool."""

    @property
    def capacity_tokens(self) -> int:
        """Count the tokens that the KV pool can hold."""

    @property
    def mode(self) -> Mode:
        """Return how the batch is decoded now."""
