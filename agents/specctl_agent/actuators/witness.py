"""What is seen of an engine from outside while real requests run: its log's new lines and two of its counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from specctl.control.sample.engine import Page
from specctl_agent.samplers.engine_http import NoAnswerError
from specctl_agent.samplers.journal_source import LogSource, NoLogError

LINES_KEPT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Counters of finished requests: verify steps and generated tokens; None: the engine does not count them."""

    verify_steps: float | None = None
    tokens: float | None = None


class Witness(Protocol):
    """Watches one engine. Contract: never raises; what cannot be seen is None."""

    def begin(self) -> None:
        """Watch the log from now on."""

    def lines(self) -> Sequence[str] | None:
        """Return the log lines since `begin`, the newest of very many; None where the log cannot be read."""

    def counted(self) -> Counted:
        """Return the counters."""


class Pages(Protocol):
    """Reads a page of metrics; the sampler of the same name is one."""

    def sample(self) -> Page:
        """Read one page; raises NoAnswerError."""


@dataclass(slots=True)
class EngineWitness:
    """Watches by the engine's own log and metrics page; each is opened anew for every switch, which are few."""

    open_log: Callable[[], LogSource]
    pages: Pages
    _log: LogSource | None = None
    _seen: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))

    def begin(self) -> None:
        """Open the log at its end."""
        self._seen.clear()
        self._log = self.open_log()
        if self._news() is None:
            self._log = None

    def lines(self) -> Sequence[str] | None:
        """Read what came since."""
        found = self._news()
        if found is None:
            return None
        self._seen.extend(found)
        return tuple(self._seen)

    def _news(self) -> Sequence[str] | None:
        try:
            return None if self._log is None else self._log.news().lines
        except (NoLogError, OSError):
            return None

    def counted(self) -> Counted:
        """Read a page."""
        try:
            counters = self.pages.sample().counters
        except (NoAnswerError, OSError):
            return Counted()
        return Counted(verify_steps=counters.verify_calls, tokens=counters.generated_tokens)
