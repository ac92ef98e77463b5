"""Replay a recorded verify trace and say at which step and request an engine diverged from the reference, and how.

Pure; called by `specctl doctor --trace` and after its probe. Lines are taken one by one, whatever they hold, and what is kept of
them is bounded. Shares no code with the lab.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specctl.doctor import replay_step
from specctl.doctor.replay_read import read
from specctl.doctor.replay_types import (
    Divergence,
    End,
    Header,
    Kind,
    Malformed,
    Plain,
    Prefill,
    ReplayResult,
    Sums,
    Verified,
)

MOST_DIVERGENCES = 100
MOST_COMPLAINTS = 5
MOST_OPEN = 100_000
"""Requests that are followed at once; beyond, the oldest is forgotten and its next step is taken as it comes."""
MOST_COUNTED = 1_000_000
"""Requests beyond this are no longer counted."""
MOST_LINES = 20_000_000
"""Lines of a trace that are read; a file of 64 MB has some hundred thousand."""

Step = Prefill | Plain | Verified


@dataclass(slots=True)
class _Request:
    """What is known of a request after its last step: the cache's length and newest token that are due, or that it ended."""

    prefix: int
    newest: int | None
    ended: bool = False
    tokens: list[int] | None = None


@dataclass(slots=True)
class _Replay:
    """The running sums and the requests that are open; `given` are those that got a token since the trace was begun."""

    streamed: Mapping[str, Sequence[int]]
    engine: str | None = None
    lines: int = 0
    malformed: int = 0
    complaints: list[str] = field(default_factory=list)
    open: dict[str, _Request] = field(default_factory=dict)
    rids: set[int] = field(default_factory=set)
    given: set[int] = field(default_factory=set)
    plain_steps: int = 0
    steps: int = 0
    nodes: int = 0
    drafts: int = 0
    committed: int = 0
    ended: int = 0
    divergences: list[Divergence] = field(default_factory=list)
    by_kind: Counter[Kind] = field(default_factory=Counter)
    untold: Counter[str] = field(default_factory=Counter)
    full: bool = False

    def take(self, line: str | bytes) -> None:
        """Take up one line."""
        self.lines += 1
        if not line.strip():
            return
        record = read(line)
        match record:
            case Malformed(reason=reason):
                self.malformed += 1
                if len(self.complaints) < MOST_COMPLAINTS:
                    self.complaints.append(f"line {self.lines}: {reason}")
                self.open.clear()  # the lost line may have been anybody's step
            case Header(engine=engine):
                self.engine = engine
                self.open.clear()
                self.given.clear()
            case End():
                self.full = True
            case _:
                self._step(record)

    def _step(self, record: Step) -> None:
        if len(self.rids) < MOST_COUNTED:
            self.rids.add(hash(record.rid))
        found = self._judged(record)
        if found is not None:
            self._diverges(record, *found)
        self._follow(record, sound=found is None)

    def _judged(self, record: Step) -> tuple[Kind, str] | None:
        """Return how this step diverges: from the one before it, then by itself."""
        known = self.open.get(record.rid)
        found = None if known is None or isinstance(record, Prefill) else _continues(record, known)
        if not isinstance(record, Verified):
            self.plain_steps += isinstance(record, Plain)
            return found
        self._count(record)
        return found or replay_step.first_divergence(record)

    def _count(self, record: Verified) -> None:
        self.steps += 1
        self.nodes += len(record.tokens)
        self.committed += len(record.committed)
        self.ended += record.finish is not None
        if replay_step.tree(record) is None:
            self.drafts += len(replay_step.reference_walk(record)) - 1
        for name in ("positions", "depth", "drafts", "block") + (() if record.parents is None else ("budget", "topk")):
            self.untold[name] += getattr(record, name) is None

    def _diverges(self, record: Step, kind: Kind, said: str) -> None:
        self.by_kind[kind] += 1
        if len(self.divergences) < MOST_DIVERGENCES:
            self.divergences.append(Divergence(kind=kind, line=self.lines, step=record.step, rid=record.rid, said=said))

    def _follow(self, record: Step, *, sound: bool) -> None:
        """Remember what the request's next step must continue; nothing after a step that diverged, lest one fault count twice."""
        before = self.open.pop(record.rid, None)
        wanted = self.streamed.get(record.rid)
        if isinstance(record, Prefill):
            prefix = record.prompt + len(record.committed) - 1
            tokens = self._given_before(record, before)
        else:
            prefix = record.prefix + len(record.committed)
            tokens = None if before is None else before.tokens
        if wanted is not None and tokens is not None:
            tokens += record.committed
        if record.committed and len(self.given) < MOST_COUNTED:
            self.given.add(hash(record.rid))
        if record.finish is not None and wanted is not None and tokens is not None and tokens != list(wanted):
            pairs = enumerate(zip(tokens, wanted, strict=False))
            at = next((at for at, (ours, theirs) in pairs if ours != theirs), None)
            told = f"token {at + 1} differs" if at is not None else f"{len(wanted)} received, {len(tokens)} committed"
            self._diverges(record, Kind.STREAMED, told)
        if not sound or (isinstance(record, Prefill) and not record.committed):
            return
        kept = tokens if wanted is not None and record.finish is None else None
        newest = record.committed[-1] if record.committed else (None if before is None else before.newest)
        self.open[record.rid] = _Request(prefix=prefix, newest=newest, ended=record.finish is not None, tokens=kept)
        if len(self.open) > MOST_OPEN:
            del self.open[next(iter(self.open))]

    def _given_before(self, record: Prefill, before: _Request | None) -> list[int] | None:
        """Return the tokens of a request before its prompt is read; None where they are not known.

        A request that was taken back is read again with what it was given as part of its prompt, and goes on from there.
        """
        if before is None:
            return None if hash(record.rid) in self.given else []
        return [] if before.ended or record.prompt != before.prefix + 1 else before.tokens

    def result(self) -> ReplayResult:
        """Return what was found."""
        untold = tuple(
            f"{name}: not told in {count} of {self.steps} steps" for name, count in self.untold.items() if count
        )
        return ReplayResult(
            engine=self.engine,
            lines=self.lines,
            malformed=self.malformed,
            complaints=tuple(self.complaints),
            requests=len(self.rids),
            plain_steps=self.plain_steps,
            sums=Sums(
                steps=self.steps, nodes=self.nodes, drafts=self.drafts, committed=self.committed, ended=self.ended
            ),
            divergences=tuple(self.divergences),
            by_kind=dict(self.by_kind),
            unchecked=untold,
            full=self.full,
        )


def check(lines: Iterable[str | bytes], *, streamed: Mapping[str, Sequence[int]] | None = None) -> ReplayResult:
    """Replay the lines of a trace; `streamed` holds what clients received, by request id, where that is known."""
    replay = _Replay(streamed=streamed or {})
    for line in itertools.islice(lines, MOST_LINES):
        replay.take(line)
    return replay.result()


def _continues(record: Plain | Verified, known: _Request) -> tuple[Kind, str] | None:
    """Hold a step against what the request's last one left."""
    if known.ended:
        return Kind.AFTER_END, "its end is recorded before"
    if record.prefix != known.prefix:
        return Kind.PREFIX, f"{record.prefix} tokens in the cache, {known.prefix} are due"
    if isinstance(record, Verified) and known.newest is not None and record.tokens[0] != known.newest:
        return Kind.ROOT, f"the root is {record.tokens[0]}, the newest token {known.newest}"
    return None
