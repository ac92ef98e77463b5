"""Fold the log lines of a start into what they say: phase, progress bar, known texts, the uncaught error, a tail for people.

Pure; called by rollout/gate.py. Lines are an engine's words: they are bounded, stripped of control characters, and never trusted
to be complete or in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specctl.engines._log_types import MAX_LINE, KnownText, LogGrammar, Phase, TextKind

TAIL_LINES = 40
MAX_SHOWN = 400  # characters of a line that are kept for people
MAX_RANKS = 1024
MAX_CAUSE_LINES = 4
_ERROR_NAME = re.compile(r"[A-Za-z_][\w.]{0,199}")
_ERROR_ENDINGS = ("Error", "Exception", "Interrupt", "Exit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A known text that was seen: the text, its title with what the line says, the line and those that continue it."""

    text: KnownText
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A progress bar as last drawn."""

    done: int
    total: int
    wording: str

    @property
    def ratio(self) -> float:
        """Return how much is done, 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total > 0 else 0.0

    def __str__(self) -> str:
        return self.wording.format(done=self.done, total=self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScan:
    """What the lines so far say.

    `entered` are the phases in the order in which they began; `loads` counts begun and ended weight loads by rank; `error` is the
    last exception line that no known text explains; `closed`: what comes now is aftermath. `signs` counts the lines that show
    that the engine does something (answers to our own probes and notes do not).
    """

    entered: tuple[Phase, ...] = (Phase.START,)
    begun: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, int] = field(default_factory=dict)
    bar: Bar | None = None
    capture: str | None = None
    hits: tuple[Hit, ...] = ()
    error: tuple[str, ...] = ()
    closed: bool = False
    signs: int = 0
    tail: tuple[str, ...] = ()

    @property
    def phase(self) -> Phase:
        """Return the phase of the foremost rank."""
        return self.entered[-1]

    @property
    def failing(self) -> bool:
        """Claim that the engine itself said that the start fails."""
        return any(hit.text.kind is not TextKind.NOTE for hit in self.hits)

    @property
    def collapsed(self) -> bool:
        """Claim that a consequence of a failure was seen, so that nothing can come of this start."""
        return any(hit.text.kind is TextKind.CONSEQUENCE for hit in self.hits)

    @property
    def notes(self) -> tuple[Hit, ...]:
        """Return the known texts that are worth a word but fail nothing."""
        return tuple(hit for hit in self.hits if hit.text.kind is TextKind.NOTE)


def read(grammar: LogGrammar, scan: LogScan, lines: Sequence[str]) -> LogScan:
    """Return the scan with these lines folded in."""
    if not lines:
        return scan
    reader = _Reader(grammar, scan)
    for line in lines:
        for update in _updates(line):
            reader.take(update)
    return reader.result()


def cause(grammar: LogGrammar, scan: LogScan) -> Hit | None:
    """Return the reason of a failure as far as the log tells: a known cause, else None.

    Of several the grammar's order decides. A note that explains the cause (a plug-in that failed to load explains the unknown
    algorithm) takes its place and keeps the cause's line.
    """
    causes = [hit for hit in scan.hits if hit.text.kind is TextKind.CAUSE]
    if not causes:
        return None
    best = min(causes, key=lambda hit: grammar.preference(hit.text))
    for note in scan.notes:
        if best.text.id in note.text.explains:
            return replace(note, lines=(*note.lines, *best.lines)[:MAX_CAUSE_LINES])
    return best


def consequence(grammar: LogGrammar, scan: LogScan) -> Hit | None:
    """Return the most telling consequence, for a failure whose cause the log does not name."""
    found = [hit for hit in scan.hits if hit.text.kind is TextKind.CONSEQUENCE]
    return min(found, key=lambda hit: grammar.preference(hit.text)) if found else None


def clean(line: str, limit: int = MAX_SHOWN) -> str:
    """Return a line fit for a terminal: bounded, and a space in the place of what would steer it or cannot be seen."""
    shown = line[:limit]
    return (shown if shown.isprintable() else "".join(char if char.isprintable() else " " for char in shown)).rstrip()


def _updates(line: str) -> Iterator[str]:
    """Split what carriage returns put into one line; of the many redrawings of a bar every one is cheap."""
    for update in re.split(r"[\r\n]", line):
        if update.strip():
            yield update[:MAX_LINE]


def _is_error(text: str) -> bool:
    """Claim that a line is the last of a traceback: a dotted name of an exception, alone or before a colon."""
    name = text.split(":", 1)[0]
    return _ERROR_NAME.fullmatch(name) is not None and name.endswith(_ERROR_ENDINGS)


class _Reader:
    """The scan while lines are folded in: fields as lists, frozen again by `result`."""

    def __init__(self, grammar: LogGrammar, scan: LogScan) -> None:
        self.grammar = grammar
        self.scan = scan
        self.entered = list(scan.entered)
        self.begun = dict(scan.begun)
        self.ended = dict(scan.ended)
        self.hits = {hit.text.id: hit for hit in scan.hits}
        self.bar = scan.bar
        self.capture = scan.capture
        self.error = scan.error
        self.closed = scan.closed
        self.signs = scan.signs
        self.tail = list(scan.tail)
        self.grows: str | None = None  # the hit, or "error", that the next line may continue

    def result(self) -> LogScan:
        """Return the frozen scan."""
        return LogScan(
            entered=tuple(self.entered),
            begun=self.begun,
            ended=self.ended,
            bar=self.bar,
            capture=self.capture,
            hits=tuple(self.hits.values()),
            error=self.error,
            closed=self.closed,
            signs=self.signs,
            tail=tuple(self.tail[-TAIL_LINES:]),
        )

    def take(self, line: str) -> None:
        """Fold in one line."""
        stamp = self.grammar.prefix.match(line)
        text = line[stamp.end() :] if stamp else line
        rank = (stamp.groupdict().get("rank") or "").strip() if stamp else ""
        if any(pattern.search(text) for pattern in self.grammar.noise):
            return
        if any(pattern.search(text) for pattern in self.grammar.private):
            self.signs += 1
            return
        progressed = self._progress(text)
        if not progressed:
            self.tail.append(clean(line))
            if len(self.tail) > 4 * TAIL_LINES:
                del self.tail[:-TAIL_LINES]
        self._phase(text, rank)
        source = stamp is None and text[:1].isspace()  # a traceback's frames quote source code, which is no message
        noted = False if source else self._texts(text, stamped=stamp is not None)
        if not noted:
            self.signs += 1

    def _phase(self, text: str, rank: str) -> None:
        if self.grammar.load_begin.search(text):
            loads = self._count(self.begun, rank)
            self._enter(Phase.TARGET_WEIGHTS if loads <= 1 else Phase.DRAFT_WEIGHTS)
        elif self.grammar.load_end.search(text):
            self._count(self.ended, rank)
        else:
            for mark in self.grammar.marks:
                if mark.pattern.search(text):
                    self._enter(mark.phase)
        named = self.grammar.capture.search(text)
        if named:
            self.capture, self.bar = named["name"].lower(), None

    def _count(self, loads: dict[str, int], rank: str) -> int:
        if rank in loads or len(loads) < MAX_RANKS:
            loads[rank] = loads.get(rank, 0) + 1
        return loads.get(rank, 1)

    def _enter(self, phase: Phase) -> None:
        if phase.place > self.entered[-1].place:
            self.entered.append(phase)
            self.bar = None
            self.capture = None

    def _progress(self, text: str) -> bool:
        for mark in self.grammar.progress:
            found = mark.pattern.search(text)
            if found is None:
                continue
            if self.entered[-1].place < mark.phases[0].place:
                self._enter(mark.phases[0])
            if self.entered[-1] in mark.phases:
                self.bar = Bar(done=int(found["done"]), total=int(found["total"]), wording=mark.wording)
            return True
        return False

    def _texts(self, text: str, *, stamped: bool) -> bool:
        """Fold in known texts and errors; return whether the line is but a note."""
        kinds = set()
        for known in self.grammar.texts:
            found = known.pattern.search(text)
            if found is None:
                continue
            kinds.add(known.kind)
            self._hit(known, found, text)
        if kinds:
            return kinds == {TextKind.NOTE}
        name = text.split(":", 1)[0]
        if not stamped and _is_error(text):
            if not self.closed and name not in self.grammar.stray_errors:
                self.error, self.grows = (clean(text),), "error"
        else:
            self._continue(text, stamped=stamped)
        return False

    def _hit(self, known: KnownText, found: re.Match[str], text: str) -> None:
        aftermath = self.closed and known.kind is TextKind.CAUSE and (self.error or self._has_cause())
        if known.id not in self.hits and not aftermath:
            self.hits[known.id] = Hit(text=known, title=clean(known.title_of(found)), lines=(clean(text),))
            self.grows = known.id
        self.closed = self.closed or known.closes

    def _has_cause(self) -> bool:
        return any(hit.text.kind is TextKind.CAUSE for hit in self.hits.values())

    def _continue(self, text: str, *, stamped: bool) -> None:
        """Let an error's message run over the next lines, until a stamp, a traceback's line or too many."""
        goes_on = not stamped and not text.startswith(
            (" ", "\t", "Traceback", "During handling", "The above exception")
        )
        if self.grows == "error" and goes_on and len(self.error) < MAX_CAUSE_LINES:
            self.error = (*self.error, clean(text))
        elif self.grows in self.hits and goes_on and len(self.hits[self.grows].lines) < MAX_CAUSE_LINES:
            hit = self.hits[self.grows]
            self.hits[self.grows] = replace(hit, lines=(*hit.lines, clean(text)))
        else:
            self.grows = None
