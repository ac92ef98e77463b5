"""What the dashboard knows: the newest sights as rows, each with its trend and its problems; and what hosts were asked for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from specctl.control.sight import Sight
from specctl.control.sight_events import Event
from specctl.control.sight_past import Past
from specctl.errors import SpecctlError
from specctl.ops.sights import Rows
from specctl.tui import words
from specctl.tui.columns import BY_KEY, Row
from specctl.tui.problems import problems_of
from specctl.tui.sane import sane

Key = tuple[str, str]
TREND_POINTS = BY_KEY["trend"].most


class Feed(Protocol):
    """Where sights come from: ops/sights.py's Watch, or a test's own. No call but `ask` waits for a host."""

    def sights(self) -> tuple[Sight, ...]:
        """Return the newest sight of every server; ages are of now."""

    def past(self, host: str, server: str) -> Past:
        """Return the figures of a server's newest past."""

    def events(self) -> tuple[Event, ...]:
        """Return what happened, in order."""

    def ask(self, host: str, server: str, what: str, limit: int) -> Rows:
        """Ask a host for `decisions`, `records` or log `lines` now; raises the SpecctlError of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of asking a host: rows, or the error; `rows` None: no answer yet."""

    rows: Rows | None = None
    error: SpecctlError | None = None


class Asked:
    """Asks hosts in threads, one question of a kind a server at a time, and keeps the newest reply."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._replies: dict[tuple[Key, str], Reply] = {}
        self._under_way: set[tuple[Key, str]] = set()
        self._lock = threading.Lock()
        self.revision = 0

    def reply(self, key: Key, what: str) -> Reply:
        """Return the newest reply; the one before stays until another comes."""
        return self._replies.get((key, what), Reply())

    def ask(self, key: Key, what: str, limit: int) -> None:
        """Ask, unless the same is being asked."""
        with self._lock:
            if (key, what) in self._under_way:
                return
            self._under_way.add((key, what))
        threading.Thread(target=self._run, args=(key, what, limit), name=f"specctl-ask-{what}", daemon=True).start()

    def idle(self) -> bool:
        """Claim that no question waits for its answer."""
        return not self._under_way

    def _run(self, key: Key, what: str, limit: int) -> None:
        try:
            reply = Reply(rows=self._feed.ask(*key, what, limit))
        except SpecctlError as error:
            reply = Reply(rows=self.reply(key, what).rows, error=error)
        with self._lock:
            self._replies[key, what] = reply
            self._under_way.discard((key, what))
            self.revision += 1


class Model:
    """Folds sights into rows, one look at a time; made before the feed begins, it knows a server that nobody looked at yet."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._blank = {(sight.host, sight.server): sight for sight in feed.sights() if sight.age_s is None}
        self.asked = Asked(feed)
        self.rows: tuple[Row, ...] = ()
        self._by_key: Mapping[Key, Row] = {}
        self._trends: dict[Key, deque[float | None]] = {}

    def look(self) -> None:
        """Take the newest sights."""
        self.rows = tuple(self._row(sane(sight)) for sight in self.feed.sights())
        self._by_key = {row.key: row for row in self.rows}

    def complete(self) -> bool:
        """Claim that of every server something is known, if only why it is not."""
        return not any(self._blank.get((sight.host, sight.server)) == sight for sight in self.feed.sights())

    def row(self, key: Key) -> Row | None:
        """Return a server's newest row; None where it is watched no more."""
        return self._by_key.get(key)

    def of_host(self, name: str) -> Row | None:
        """Return the first server of a host, or the one that HOST/SERVER names."""
        host, _, server = name.partition("/")
        return next((row for row in self.rows if row.sight.host == host and server in ("", row.sight.server)), None)

    def _row(self, sight: Sight) -> Row:
        key = (sight.host, sight.server)
        if self._blank.get(key) == sight:
            sight = replace(sight, reason=None)
        trend = self._trends.get(key)
        value = words.fresh(sight.tokens_per_s)
        if trend is None:
            trend = self._trends[key] = deque(maxlen=TREND_POINTS)
        if not any(point is not None for point in trend) and value is not None:
            # What the host's agent kept of before this watch.
            trend.extend(self.feed.past(*key).tokens_per_s[-TREND_POINTS:])
        trend.append(value)
        return Row(sight=sight, trend=tuple(trend), problems=problems_of(sight))
