"""The board of an act on several hosts: rows that redraw on a terminal, lines on a pipe, events for `--json`; all on one console.

Implements ops/reporter.py's Reporter; told from several threads. It never floods: a pipe gets a line when a phase or verdict
changes and else every 30 s, `--json` at most an event a second where only figures change.
"""

from __future__ import annotations

import enum
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from specctl.rollout.gate_types import GateState
from specctl.rollout.story import kind
from specctl.ui import events, gate
from specctl.ui.text import plain

PLAIN_EVERY_S = 30.0
JSON_EVERY_S = 1.0


class Mode(enum.Enum):
    """Who reads: a person at a terminal, a pipe, a program."""

    LIVE = "live"
    PLAIN = "plain"
    JSON = "json"


def mode_for(console: Console, *, json_asked: bool = False) -> Mode:
    """Return how to speak on a console."""
    if json_asked:
        return Mode.JSON
    return Mode.LIVE if console.is_terminal and not console.is_dumb_terminal else Mode.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What was last said of a host: the part that is always worth a line, the rest, and when."""

    key: tuple[str, ...]
    rest: tuple[object, ...]
    at_s: float


class Board:
    """Show many hosts at once; use it as a context, or call `close` at the end."""

    def __init__(
        self, console: Console, mode: Mode, *, hosts: tuple[str, ...] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._mode = mode
        self._clock = clock
        self._width = max((len(host) for host in hosts), default=0)
        self._lock = threading.Lock()
        self._rows: dict[str, Callable[[int], Text]] = {}
        self._said: dict[str, _Said] = {}
        self._live: Live | None = None
        self._deaf = False
        self._told: str | None = None  # the host of the last line that stays
        self._latest = ""  # the last line on a pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, work: Callable[[], None]) -> None:
        """Do the work under the lock; when nobody reads any more (a closed pipe, a full disk), fall silent.

        An act on a host must not end because its audience has left.
        """
        with self._lock:
            if self._deaf:
                return
            try:
                work()
            except (OSError, ValueError):
                self._deaf = True
                self._live = None

    def step(self, host: str, name: str, text: str) -> None:
        """Say that a step of an act stands so and so; the next call replaces the row."""
        self._say(lambda: self._step(host, name, plain(text)))

    def _step(self, host: str, name: str, text: str) -> None:
        self._fit(host)
        if self._mode is Mode.LIVE:
            self._row(host, lambda width: gate.step_line(host, name, text, width=width, host_width=self._width))
        elif self._due(host, ("step", name), (text,)):
            line = gate.plain_step(host, name, text, host_width=self._width)
            self._tell(line, events.step_event(host, name, text))

    def gate(self, host: str, state: GateState) -> None:
        """Show how far a load is."""
        self._say(lambda: self._gate(host, state))

    def _gate(self, host: str, state: GateState) -> None:
        self._fit(host)
        if self._mode is Mode.LIVE:
            self._row(host, lambda width: self._load(host, state, width))
            return
        rest = (state.progress, state.detail)
        if self._due(host, ("gate", state.phase.value, kind(state)), rest):
            line = gate.plain_line(host, state, host_width=self._width)
            self._tell(line, events.gate_event(host, state))

    def final(self, host: str, name: str, text: str) -> None:
        """Say something that stays; the host's row goes."""
        self._say(lambda: self._final(host, name, plain(text)))

    def _final(self, host: str, name: str, text: str) -> None:
        self._fit(host)
        if self._mode is Mode.LIVE:
            self._rows.pop(host, None)
            self._draw()
        if self._mode is Mode.JSON:
            self._tell("", events.final_event(host, name, text))
        else:
            follows = self._told == host
            line = gate.final_line(host, name, text, host_width=self._width, follows=follows)
            # How a load ended is told twice, as it is seen and as the first line of why: here it stands already.
            if line.plain != self._latest:
                self._console.print(line, soft_wrap=True)
            self._latest = ""
            self._told = host

    def close(self) -> None:
        """Stop redrawing; rows that nobody ended stay as lines."""
        self._say(self._close)

    def _close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        for row in self._rows.values():
            self._console.print(row(self._console.width))
        self._rows.clear()

    def _load(self, host: str, state: GateState, width: int) -> Text:
        ascii_only = self._console.options.ascii_only
        return gate.load_line(host, state, width=width, host_width=self._width, ascii_only=ascii_only)

    def _fit(self, host: str) -> None:
        self._width = max(self._width, len(host))

    def _row(self, host: str, row: Callable[[int], Text]) -> None:
        self._rows[host] = row
        self._draw()

    def _draw(self) -> None:
        if not self._rows:
            if self._live is not None:
                self._live.stop()
                self._live = None
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Group(*(row(self._console.width) for row in self._rows.values())), refresh=True)

    def _due(self, host: str, key: tuple[str, ...], rest: tuple[object, ...]) -> bool:
        """Decide whether to speak of a host again, and remember it."""
        now, last = self._clock(), self._said.get(host)
        if last is not None and last.key == key:
            every_s = JSON_EVERY_S if self._mode is Mode.JSON else PLAIN_EVERY_S
            if now - last.at_s < every_s or (self._mode is Mode.JSON and last.rest == rest):
                return False
        self._said[host] = _Said(key=key, rest=rest, at_s=now)
        return True

    def _tell(self, line: str, event: Mapping[str, object]) -> None:
        if self._mode is Mode.JSON:
            self._console.file.write(json.dumps(event, allow_nan=False) + "\n")
        else:
            self._console.file.write(line + "\n")
            self._latest = line
        self._console.file.flush()
