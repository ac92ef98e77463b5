"""The log's sampler: decode lines, a tree's lines and fatal texts of one server, counted since the agent began to read them."""

from __future__ import annotations

from specctl.control.sample.engine import EngineLines
from specctl.control.sample.engine_lines import LineReader, fold
from specctl_agent.samplers.journal_source import WITHIN_S, LogSource

PERIOD_S = 15.0


class EngineLog:
    """Reads a log's news and folds them; it remembers figures and ids, never a line."""

    def __init__(
        self, source: LogSource, reading: LineReader, *, name: str = "engine_log", period_s: float = PERIOD_S
    ) -> None:
        self.name = name
        self.period_s = period_s
        self.deadline_s = 2 * WITHIN_S + 5.0
        self._source = source
        self._reading = reading
        self._lines = EngineLines()

    def sample(self) -> EngineLines:
        """Read what is new; raises NoLogError or OSError where the log cannot be read."""
        news = self._source.news()
        self._lines = fold(self._lines, news.lines, self._reading, news.lost)
        return self._lines

    def close(self) -> None:
        """Hold nothing between looks."""
