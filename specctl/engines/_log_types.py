"""How an engine family writes its start-up log, as data: phases, progress bars, known texts and their remedies.

An engine's file holds one `LogGrammar`; rollout/loadlog.py reads lines by it. Every match is made on a line of bounded length
with patterns of bounded repetition, so that no line, however hostile, costs more than its length.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

MAX_LINE = 2000  # characters of a line that are looked at: longer than any text known, short enough to be cheap


class Phase(enum.Enum):
    """A part of a start, in the order in which they come; an engine may leave some out."""

    START = "start"
    DISTRIBUTED = "distributed"
    TARGET_WEIGHTS = "weights"
    DRAFT_WEIGHTS = "draft_weights"
    KV_POOL = "kv_pool"
    GRAPHS = "graphs"
    WARMUP = "warmup"
    READY = "ready"

    @property
    def place(self) -> int:
        """Return its place in the order, from 0."""
        return _PLACES[self]

    @property
    def label(self) -> str:
        """Return the word that people read."""
        return _LABELS[self]


_PLACES = {phase: place for place, phase in enumerate(Phase)}
_LABELS = {
    Phase.START: "start",
    Phase.DISTRIBUTED: "dist init",
    Phase.TARGET_WEIGHTS: "weights",
    Phase.DRAFT_WEIGHTS: "draft",
    Phase.KV_POOL: "kv pool",
    Phase.GRAPHS: "graphs",
    Phase.WARMUP: "warm-up",
    Phase.READY: "ready",
}


class TextKind(enum.Enum):
    """What a known text says: why the start failed, that it failed, or something worth knowing of a start that goes on."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownText:
    """A text of the engine that is known to people, with what to do.

    `titled` is the title when every named group of the pattern took part, with the groups in braces. `closes`: what comes after
    it is aftermath and names no cause. `explains`: ids of causes of which this note is the real reason.
    """

    id: str
    kind: TextKind
    pattern: re.Pattern[str]
    title: str
    remedy: str
    titled: str | None = None
    closes: bool = False
    explains: tuple[str, ...] = ()

    def title_of(self, match: re.Match[str]) -> str:
        """Return the title, with what the text itself says where it says it."""
        groups = match.groupdict()
        if self.titled is None or any(value is None for value in groups.values()):
            return self.title
        return self.titled.format_map({name: value.strip() for name, value in groups.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseMark:
    """A line that says that a phase has begun."""

    phase: Phase
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMark:
    """A progress bar: named groups `done` and `total`; `wording` has both in braces.

    `phases`: where it may stand; the first is the phase that the bar proves when none of them has begun.
    """

    phases: tuple[Phase, ...]
    pattern: re.Pattern[str]
    wording: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGrammar:
    """All that is known of an engine's log.

    `prefix` matches the time stamp, with the rank as group `rank`. The first `load_begin` of a rank is the target's, the second
    the draft's. `capture` names (group `name`) the graphs that are being captured. `noise`: lines that our own probes cause.
    `private`: lines that print arguments or prompts and are neither kept nor searched. `texts` are in the order of preference:
    of two causes the earlier in the list is the one that is reported. `port_taken`: the
    id of the text for a port that somebody else holds. `stray_errors`: exceptions that are only ever aftermath.
    """

    prefix: re.Pattern[str]
    load_begin: re.Pattern[str]
    load_end: re.Pattern[str]
    marks: tuple[PhaseMark, ...]
    progress: tuple[ProgressMark, ...]
    capture: re.Pattern[str]
    noise: tuple[re.Pattern[str], ...]
    private: tuple[re.Pattern[str], ...]
    texts: tuple[KnownText, ...]
    port_taken: str
    stray_errors: frozenset[str] = frozenset()

    def preference(self, text: KnownText) -> int:
        """Return its place in the list, from 0; texts that are not in it come last."""
        return next((place for place, known in enumerate(self.texts) if known.id == text.id), len(self.texts))

    def text(self, text_id: str) -> KnownText | None:
        """Return the text of that id, or None."""
        return next((known for known in self.texts if known.id == text_id), None)
