"""The records of a verify trace (docs/verify-trace.md) and what a replay of them finds; frozen values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

VERSION = 1
"""The one version of the format that is understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: which engine wrote the file. What came before it says nothing of what follows."""

    engine: str | None = None
    engine_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """A request's prompt was read and its first token committed."""

    rid: str
    step: int
    prompt: int
    committed: tuple[int, ...]
    finish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A step of a request without drafts; `prefix` tokens stood in the cache."""

    rid: str
    step: int
    prefix: int
    committed: tuple[int, ...]
    finish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A verify step of a request, node by node; node 0 is the root.

    `parents`: None for a chain. `target`: the target's token after each node. `path`: the nodes of the accepted path, the root
    first. `drafts`, `depth`, `nodes`: what the engine counted for its own figures. What the engine does not tell is None.
    """

    rid: str
    step: int
    prefix: int
    tokens: tuple[int, ...]
    target: tuple[int, ...]
    path: tuple[int, ...]
    committed: tuple[int, ...]
    parents: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None
    bonus: int | None = None
    finish: str | None = None
    drafts: int | None = None
    depth: int | None = None
    nodes: int | None = None
    block: int | None = None
    budget: int | None = None
    topk: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The engine wrote no more, and why."""

    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A line that is no record."""

    reason: str


Record = Header | Prefill | Plain | Verified | End


class Kind(enum.Enum):
    """How an engine diverged from the reference; the value is what a person reads."""

    TOPOLOGY = "the drafts are no tree"
    TOO_MANY = "more is verified than the knobs allow"
    POSITION = "a draft is verified at a wrong position"
    NOT_A_CHILD = "the path leaves the tree"
    NOT_TARGETS = "a draft was accepted that the target did not say"
    WALK_SHORT = "the walk stopped though the target agrees with a draft below"
    DRAFTS = "accepted drafts are counted wrong"
    DEPTH = "accepted depth is counted wrong"
    NODES = "nodes are counted wrong"
    BONUS = "the bonus token is not the target's"
    BONUS_DROPPED = "one token less is committed than was accepted"
    THROWN_AWAY = "accepted drafts are thrown away"
    COMMIT_LONG = "more is committed than was accepted"
    COMMIT_WRONG = "a committed token is not the accepted one"
    PREFIX = "the cache's length does not follow from the step before"
    ROOT = "the root is not the newest token"
    AFTER_END = "a request goes on after its end"
    STREAMED = "the client received other tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where an engine diverged first in a record: the line (from 1), the step and request, how, and the figures."""

    kind: Kind
    line: int
    step: int
    rid: str
    said: str

    def __str__(self) -> str:
        """Return one sentence."""
        return f"step {self.step}, request {self.rid}: {self.kind.value} ({self.said})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What the verify steps of a trace add up to by the reference, for comparison with what an engine reports.

    `nodes` includes roots; `drafts` are those that the reference walk accepts; `committed` as written; `ended`: steps that
    ended their request.
    """

    steps: int = 0
    nodes: int = 0
    drafts: int = 0
    committed: int = 0
    ended: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What a replay found. `divergences` holds the first few, `by_kind` counts all of them.

    `malformed` counts lines that are no records, `complaints` says why of the first few. `unchecked`: what the trace does not
    tell, so that it could not be checked. `steps` are verify steps, `requests` how many different ones were seen.
    """

    engine: str | None = None
    lines: int = 0
    malformed: int = 0
    complaints: tuple[str, ...] = ()
    requests: int = 0
    plain_steps: int = 0
    sums: Sums = field(default_factory=Sums)
    divergences: tuple[Divergence, ...] = ()
    by_kind: Mapping[Kind, int] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    full: bool = False

    @property
    def first(self) -> Divergence | None:
        """Return where the engine diverged first."""
        return self.divergences[0] if self.divergences else None

    @property
    def diverged(self) -> int:
        """Count the records that diverge."""
        return sum(self.by_kind.values())
