"""Read an engine's log into windows: each decode line with the tree's line that followed it, by rank; and the known texts.

Pure. A log may hold anything (a prompt, a binary, half a line, ten megabytes): each line is cut to MAX_LINE, searches are linear in
it, what is kept is numbers, ids and a few lines that match the tree's pattern.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from specctl.control.sample import engine_lines
from specctl.control.sample.engine import DecodeLine, EngineLines, TreeLine
from specctl.control.sample.engine_lines import LineReader
from specctl.control.sample.numbers import word
from specctl.doctor.evidence import Log, Noted, Pair
from specctl.engines._log_types import MAX_LINE, LogGrammar, TextKind

MOST_WINDOWS = 4096
"""A line each 40 steps of 20 ms: an hour of decoding."""
MOST_RANKS = 64
_TEXT_CHARS = 300
_DECODE = "Decode batch"
_START = "server_args="
_START_LINE = re.compile(r"^(?:.{0,200}\] ?)?server_args=")
"""What an engine prints first of each start; a prompt that holds the word does not stand behind a time stamp alone."""
_CHANGE = '"POST /set_internal_state HTTP/'
"""The access line of a request that changes a running engine; a refused one has it too."""
_ROUTINE = ("Prefill batch", ' HTTP/1.1" ')
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d{1,6})?((?: [A-Z]{2,4}\d{1,4}){0,6})\]")
_RATE = re.compile(r"\baccept rate: ([\d.]{1,12})")
_SPEED = re.compile(r"\bgen throughput \(token/s\): ([\d.]{1,18})")
_GRAPH = re.compile(r"\b([a-z]{1,20}) graph: (?:True|False)\b")
_NO_DEVICE = "cpu"
"""A CPU server says `cpu graph: False` for ever: that is no fallback."""


@dataclass(slots=True)
class _Reading:
    """What one pass over a log adds up."""

    windows: list[Pair] = field(default_factory=list)
    open: dict[str, int] = field(default_factory=dict)
    texts: dict[str, Noted] = field(default_factory=dict)
    engine: EngineLines = field(default_factory=EngineLines)
    lines: int = 0
    lost: int = 0
    text: str | None = None
    since_change: int | None = None

    def add(self, pair: Pair) -> int:
        """Keep a window and return its place; the oldest go where there are too many."""
        if len(self.windows) >= 2 * MOST_WINDOWS:
            del self.windows[:MOST_WINDOWS]
            self.open.clear()
        self.windows.append(pair)
        if self.since_change is not None:
            self.since_change += 1
        return len(self.windows) - 1


def read(texts: Iterable[str], reading: LineReader, *, whole: bool = False, lost: int = 0) -> Log:
    """Return what a log says of its last start: where the arguments of another start come, what was before is forgotten.

    `whole`: the lines are known to reach back to the start. `lost`: lines that were left out before.
    """
    state = _Reading(lost=lost)
    for text in texts:
        if _START in text and _START_LINE.search(text):
            state, whole = _Reading(), True
        state.lines += 1
        if len(text) > MAX_LINE:
            state.lost += 1
        _one(state, text[:MAX_LINE], reading)
    return Log(
        windows=tuple(state.windows[-MOST_WINDOWS:]),
        texts=tuple(state.texts.values()),
        engine=state.engine,
        lines=state.lines,
        lost=state.lost,
        whole=whole,
        text=state.text,
        since_change=state.since_change,
    )


def is_change(text: str) -> bool:
    """Claim that a line is of a request to change the running engine."""
    return _CHANGE in text[:MAX_LINE]


def _one(state: _Reading, text: str, reading: LineReader) -> None:
    if _DECODE in text:
        state.engine = engine_lines.fold(state.engine, (text,), reading)
        rank, at = _stamp(text)
        if len(state.open) < MOST_RANKS or rank in state.open:
            state.open[rank] = state.add(_decoded(text, at))
        return
    if any(routine in text for routine in _ROUTINE):
        if is_change(text):
            state.since_change = 0
        return
    match = reading.tree.search(text)
    if match is not None:
        state.engine = engine_lines.fold(state.engine, (text,), reading)
        state.text = text.strip()[:_TEXT_CHARS]
        _tree(state, text, engine_lines.tree_line(text, match))
        return
    noted = _noted(text, reading.grammar)
    if noted is not None:
        before = state.texts.get(noted.id)
        state.texts[noted.id] = noted if before is None else replace(before, count=before.count + 1)


def _noted(text: str, grammar: LogGrammar) -> Noted | None:
    """Return the known text that a line bears; lines that print arguments or prompts are not searched."""
    prefix = grammar.prefix.match(text)
    said = text if prefix is None else text[prefix.end() :]
    if any(pattern.search(said) for pattern in (*grammar.private, *grammar.noise)):
        return None
    for one in grammar.texts:
        match = one.pattern.search(said)
        if match is not None:
            return Noted(id=one.id, title=one.title, remedy=one.remedy, is_note=one.kind is TextKind.NOTE)
    return None


def _tree(state: _Reading, text: str, tree: TreeLine) -> None:
    """Put a tree's line to its rank's decode line; one without stands alone."""
    rank, at = _stamp(text)
    place = state.open.pop(rank, None)
    if place is None:
        state.add(Pair(tree=tree, at=at))
        return
    before = state.windows[place]
    state.windows[place] = Pair(
        decode=before.decode, tree=tree, accept_rate=before.accept_rate, tokens_s=before.tokens_s, at=before.at
    )


def _decoded(text: str, at: str | None) -> Pair:
    decode = engine_lines.decode_line(text)
    graph = _GRAPH.search(text)
    if graph is not None and graph[1] == _NO_DEVICE:
        decode = DecodeLine(running=decode.running, queued=decode.queued, accept_length=decode.accept_length)
    rate, speed = _RATE.search(text), _SPEED.search(text)
    return Pair(
        decode=decode,
        accept_rate=None if rate is None else word(rate[1]),
        tokens_s=None if speed is None else word(speed[1]),
        at=at,
    )


def _stamp(text: str) -> tuple[str, str | None]:
    """Return the rank that a line is of (as the engine writes it, empty for one alone) and the line's own time."""
    match = _STAMP.search(text)
    return ("", None) if match is None else (match[2], match[1])


def newest(texts: Iterable[str], span_s: float) -> Sequence[str]:
    """Return the lines of the last so many seconds, counted back from the newest time stamp; all where there are no stamps.

    Of a stream no more is held than these.
    """
    kept: deque[str] = deque()
    stamps: deque[tuple[float, int]] = deque()
    dropped = 0
    for place, text in enumerate(texts):
        kept.append(text)
        at_s = moment(_stamp(text[:MAX_LINE])[1])
        if at_s is None:
            continue
        stamps.append((at_s, place))
        while stamps[0][0] < at_s - span_s:
            _, last = stamps.popleft()
            for _ in range(last + 1 - dropped):
                kept.popleft()
            dropped = last + 1
    return list(kept)


def moment(at: str | None) -> float | None:
    """Return a line's time in seconds of the log's own clock, which knows no time zone: for differences only."""
    if at is None:
        return None
    try:
        return dt.datetime.fromisoformat(at).replace(tzinfo=dt.UTC).timestamp()
    except (ValueError, OverflowError):
        return None
